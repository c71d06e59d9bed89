// A thin layer over SQLite: a connection, statements, and errors as Status.
#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

#include "engine/base/status.h"

namespace tally {

class SqliteDatabase {
 public:
  SqliteDatabase() = default;
  ~SqliteDatabase() { close(); }
  SqliteDatabase(const SqliteDatabase&) = delete;
  SqliteDatabase& operator=(const SqliteDatabase&) = delete;

  // `flags`: SQLITE_OPEN_*. An immutable file is not locked. Checksums of pages are checked.
  Status open(const std::string& path, int flags, const std::string& shown_as,
              bool immutable = false);
  void close();
  // Locks the file before SQLite looks into it, as a look may write: it recovers and moves the log.
  // `busy`: another process has the lock.
  Status lock(bool* busy);
  // Whether close() moves the log into the file.
  void keep_log(bool keep);
  Status run(const char* sql);
  // Copies the database's file. The bytes come through SQLite's own descriptor: when a process
  // closes another one of the same file, it loses SQLite's lock.
  Status copy_file_to(const std::string& path, int mode) const;
  // The last error, as one sentence: the file, SQLite's message and what to do.
  Status failure() const;
  // The sentence for a file whose content is wrong. `what`: in SQLite's words.
  Status damaged(const std::string& what) const;
  int code() const { return sqlite3_errcode(handle_); }
  sqlite3* handle() const { return handle_; }

 private:
  Status unusable(int code, const std::string& what) const;

  sqlite3* handle_ = nullptr;
  int folder_ = -1;  // of a file with a long name
  std::string shown_as_;
};

// A prepared statement. It is reset after each use and finalized at the end. Binding positions
// count from 1, columns from 0. Bound texts must live until run() or the last row().
class Statement {
 public:
  Statement() = default;
  ~Statement() { finish(); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Status prepare(SqliteDatabase& database, const char* sql);
  void finish();
  Statement& bind(int position, std::string_view text);
  Statement& bind_blob(int position, std::string_view bytes);
  Statement& bind(int position, long long value);
  Statement& bind(int position, int value) { return bind(position, static_cast<long long>(value)); }
  Statement& bind(int position, double value);
  // Runs the statement to its end and resets it.
  Status run();
  // Fetches the next row. Returns false at the end, or on an error; status() tells
  // which. The statement is then reset.
  bool row();
  // The status of the row() that returned false.
  const Status& status() const { return status_; }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string text(int column) const { return std::string(bytes(column)); }
  // The text itself, which is valid until the next row.
  std::string_view bytes(int column) const;
  long long integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  SqliteDatabase* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  Status status_;
};

}  // namespace tally
