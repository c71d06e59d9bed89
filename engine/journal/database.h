// A thin layer over SQLite: a connection, statements, errors as Status.
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

  // `uri`: a file: URI or a path; `flags`: SQLITE_OPEN_*.
  Status open(const std::string& uri, int flags, const std::string& shown_as);
  void close();
  Status run(const char* sql);
  // From now on a copy of it in memory, which may be changed.
  Status move_to_memory();
  // What went wrong last, as one sentence: the file, SQLite's words and what to do.
  Status failure() const;
  int code() const { return sqlite3_errcode(handle_); }
  sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
  std::string shown_as_;
};

// A prepared statement; reset after each use, finalized at the end. Binding positions count from 1,
// columns from 0. Texts bound must live until run() or the last row().
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
  Statement& bind(int position, double value);
  // Runs to the end and resets.
  Status run();
  // The next row; false at the end, or where it could not be read: then status() says why. Reset
  // afterwards.
  bool row();
  // Of the row() that was false.
  const Status& status() const { return status_; }
  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::string text(int column) const;
  long long integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  SqliteDatabase* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
  Status status_;
};

}  // namespace tally
