#include "engine/journal/database.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "engine/base/files.h"
#include "engine/journal/journal_files.h"
#include "engine/journal/page_sums.h"

namespace tally {

Status SqliteDatabase::open(const std::string& path, int flags, const std::string& shown_as,
                            bool immutable) {
  close();
  shown_as_ = shown_as;
  std::string name = path;
  // SQLite takes no name of more than 512 bytes, those of its own files included, and no `..` above
  // the root.
  constexpr size_t longest_name = 480;
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::unique_ptr<char, decltype(&free)> full(realpath(folder.c_str(), nullptr), &free);
  if (full != nullptr) name = full.get() + ("/" + path.substr(slash + 1));
  if (full != nullptr && name.size() > longest_name) {
    folder_ = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) return Status::error(shown_as + ": cannot open: " + strerror(errno), errno);
    name = descriptor_folder + std::to_string(folder_) + "/" + path.substr(slash + 1);
  }
  if (immutable) {
    name = "file:" + percent_encoded(name) + "?immutable=1";
    flags |= SQLITE_OPEN_URI;
  }
  const int rc =
      sqlite3_open_v2(name.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, page_sum_vfs());
  if (rc != SQLITE_OK) return failure();
  return Status::ok();
}

// SQLite's own locks, on its own descriptor. RESERVED makes sure that one of several processes that
// try at the same moment succeeds; it waits for the others to let go.
Status SqliteDatabase::lock(bool* busy) {
  sqlite3_file* file = nullptr;
  *busy = false;
  if (sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
      file->pMethods == nullptr) {
    return Status::error(shown_as_ + ": cannot be locked");
  }
  constexpr int tries = 1000;
  errno = 0;
  int code = file->pMethods->xLock(file, SQLITE_LOCK_SHARED);
  if (code == SQLITE_OK) code = file->pMethods->xLock(file, SQLITE_LOCK_RESERVED);
  for (int i = 0; code == SQLITE_OK && i < tries; ++i) {
    code = file->pMethods->xLock(file, SQLITE_LOCK_EXCLUSIVE);
    if (code != SQLITE_BUSY || i + 1 == tries) break;
    code = SQLITE_OK;
    usleep(1000);
  }
  if (code == SQLITE_OK) return Status::ok();
  const int reason = errno;
  file->pMethods->xUnlock(file, SQLITE_LOCK_NONE);
  // SQLite takes ENOLCK for a lock that somebody has.
  *busy = code == SQLITE_BUSY && reason != ENOLCK;
  if (*busy) return Status::error(shown_as_ + ": is locked by another process");
  return Status::error(shown_as_ + ": cannot be locked" +
                           (reason != 0 ? std::string(": ") + strerror(reason) : "") +
                           "; choose a folder on a file system that has locks with --outpath, or "
                           "continue the run when the file system answers again",
                       reason);
}

void SqliteDatabase::keep_log(bool keep) {
  sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep ? 1 : 0, nullptr);
}

void SqliteDatabase::close() {
  if (handle_ != nullptr) sqlite3_close_v2(handle_);
  handle_ = nullptr;
  if (folder_ >= 0) ::close(folder_);
  folder_ = -1;
}

Status SqliteDatabase::failure() const {
  const int code = sqlite3_errcode(handle_);
  if (handle_ != nullptr && sqlite3_extended_errcode(handle_) == SQLITE_IOERR_DATA) {
    return damaged("error code=8202");
  }
  switch (code) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return damaged(sqlite3_errmsg(handle_));
    case SQLITE_READONLY:
      return Status::error(shown_as_ + ": cannot be written; check the directory's permissions");
    case SQLITE_NOMEM:
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return unusable(code, handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory");
    default:
      return Status::error(shown_as_ + ": " +
                           (handle_ != nullptr ? sqlite3_errmsg(handle_) : "out of memory"));
  }
}

// The file is as it was, and the system does not let it be read or written.
Status SqliteDatabase::unusable(int code, const std::string& what) const {
  int reason = handle_ != nullptr ? last_system_error(handle_) : 0;
  if (code == SQLITE_FULL) reason = ENOSPC;
  if (code == SQLITE_NOMEM || handle_ == nullptr) reason = ENOMEM;
  std::string message = shown_as_ + ": " + what;
  if (reason != 0) message += std::string(": ") + strerror(reason);
  const bool refused = reason == EACCES || reason == EPERM || reason == EROFS;
  if (refused) message += "; check the directory's permissions and continue the run";
  const std::string what_to_do = advice(reason, "continue the run");
  if (!refused) {
    message +=
        what_to_do.empty() ? "; continue the run when the file system answers again" : what_to_do;
  }
  return Status::error(message + ": nothing that finished is lost", reason);
}

// quick_check gives the error of a page as a number.
Status SqliteDatabase::damaged(const std::string& what) const {
  constexpr std::string_view number = "error code=";
  const size_t at = what.find(number);
  const int code = at == std::string::npos ? 0 : std::atoi(what.c_str() + at + number.size());
  if (code != SQLITE_IOERR_DATA && ((code & 0xff) == SQLITE_IOERR || code == SQLITE_NOMEM)) {
    return unusable(code & 0xff, "cannot be read");
  }
  return Status::error(shown_as_ + ": is damaged (" +
                       (code == SQLITE_IOERR_DATA ? "a page does not match its checksum" : what) +
                       "); start the run again, or restore the file from a copy");
}

Status SqliteDatabase::run(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return failure();
  return Status::ok();
}

Status SqliteDatabase::copy_file_to(const std::string& path, int mode) const {
  sqlite3_file* file = nullptr;
  sqlite3_int64 size = 0;
  Status unreadable = Status::error(shown_as_ + ": cannot be read");
  if (sqlite3_file_control(handle_, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
      file->pMethods == nullptr || file->pMethods->xFileSize(file, &size) != SQLITE_OK) {
    return unreadable;
  }
  sqlite3_int64 at = 0;
  return replace_file(path, mode, [&](std::string* piece) {
    piece->resize(static_cast<size_t>(std::min<sqlite3_int64>(1 << 18, size - at)));
    if (piece->empty()) return Status::ok();
    const int code =
        file->pMethods->xRead(file, piece->data(), static_cast<int>(piece->size()), at);
    at += static_cast<sqlite3_int64>(piece->size());
    return code == SQLITE_OK ? Status::ok() : unreadable;
  });
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

std::string_view Statement::bytes(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};
  const int size = sqlite3_column_bytes(statement_, column);
  return {static_cast<const char*>(bytes), static_cast<size_t>(size)};
}

}  // namespace tally
