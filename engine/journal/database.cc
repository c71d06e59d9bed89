#include "engine/journal/database.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace tally {

Status SqliteDatabase::open(const std::string& uri, int flags, const std::string& shown_as) {
  close();
  shown_as_ = shown_as;
  const int rc = sqlite3_open_v2(uri.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (rc != SQLITE_OK) return failure();
  return Status::ok();
}

void SqliteDatabase::close() {
  if (handle_ != nullptr) sqlite3_close_v2(handle_);
  handle_ = nullptr;
}

Status SqliteDatabase::failure() const {
  const int code = sqlite3_errcode(handle_);
  std::string message = shown_as_ + ": ";
  const int reason = handle_ != nullptr ? sqlite3_system_errno(handle_) : 0;
  switch (code) {
    case SQLITE_FULL:
      return Status::error(
          message +
          "no space left on the disk; free some and continue the run: nothing that "
          "finished is lost");
    case SQLITE_READONLY:
      return Status::error(message + "cannot be written; check the directory's permissions");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Status::error(message + "is damaged (" + sqlite3_errmsg(handle_) +
                           "); start the run again, or restore the file from a copy");
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      if (reason == ENOSPC || reason == EDQUOT) {
        return Status::error(
            message + strerror(reason) +
            "; free some space and continue the run: nothing that finished is lost");
      }
      if (reason == EACCES || reason == EPERM || reason == EROFS) {
        return Status::error(message + "cannot be written; check the directory's permissions");
      }
      message += sqlite3_errmsg(handle_);
      if (reason != 0) message += std::string(": ") + strerror(reason);
      return Status::error(message);
    default:
      return Status::error(message +
                           (handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory"));
  }
}

Status SqliteDatabase::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failure();
  return Status::ok();
}

Status SqliteDatabase::move_to_memory() {
  sqlite3* copy = nullptr;
  Status status = Status::error(shown_as_ + ": out of memory");
  if (sqlite3_open_v2(":memory:", &copy,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) == SQLITE_OK) {
    sqlite3_backup* backup = sqlite3_backup_init(copy, "main", handle_, "main");
    if (backup != nullptr) sqlite3_backup_step(backup, -1);
    sqlite3_backup_finish(backup);
    std::swap(copy, handle_);
    status = code() == SQLITE_OK ? Status::ok() : failure();
  }
  sqlite3_close_v2(copy);
  return status;
}

Status Statement::prepare(SqliteDatabase& database, const char* sql) {
  finish();
  database_ = &database;
  if (sqlite3_prepare_v3(database.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement_,
                         nullptr) != SQLITE_OK) {
    return database.failure();
  }
  return Status::ok();
}

void Statement::finish() {
  sqlite3_finalize(statement_);
  statement_ = nullptr;
}

Statement& Statement::bind(int position, std::string_view text) {
  sqlite3_bind_text(statement_, position, text.data(), static_cast<int>(text.size()),
                    SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind_blob(int position, std::string_view bytes) {
  // The data of an empty view may be null, which would bind NULL.
  sqlite3_bind_blob(statement_, position, bytes.empty() ? "" : bytes.data(),
                    static_cast<int>(bytes.size()), SQLITE_STATIC);
  return *this;
}

Statement& Statement::bind(int position, long long value) {
  sqlite3_bind_int64(statement_, position, value);
  return *this;
}

Statement& Statement::bind(int position, double value) {
  sqlite3_bind_double(statement_, position, value);
  return *this;
}

Status Statement::run() {
  const int rc = sqlite3_step(statement_);
  Status status = rc == SQLITE_DONE || rc == SQLITE_ROW ? Status::ok() : database_->failure();
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  return status;
}

bool Statement::row() {
  const int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  status_ = rc == SQLITE_DONE ? Status::ok() : database_->failure();
  sqlite3_reset(statement_);
  return false;
}

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes != nullptr ? std::string(static_cast<const char*>(bytes), static_cast<size_t>(size))
                          : std::string();
}

}  // namespace tally
