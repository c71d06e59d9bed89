#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "engine/report/outputs.h"

namespace tally {
namespace {

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Handle = std::unique_ptr<sqlite3, Close>;
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

const Value& value_of(const Record& row, const std::string& name) {
  static const Value none;
  auto found = row.values.find(name);
  return found == row.values.end() ? none : found->second;
}

class Writer {
 public:
  Writer(const Database& database, const std::vector<Record>& rows, const std::string& path)
      : database_(database), rows_(rows), path_(path) {}

  Status write() {
    std::error_code ignored;  // opening reports the error
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    sqlite3* opened = nullptr;
    int code = sqlite3_open(path_.c_str(), &opened);
    handle_.reset(opened);
    if (code != SQLITE_OK) return failure("open");
    sqlite3_busy_timeout(opened, 30000);
    if (!run("BEGIN IMMEDIATE")) return failure("lock");
    if (!run(create_statement())) return failure("make the table in");
    if (Status s = match_columns(); !s) return s;
    if (Status s = insert(); !s) return s;
    if (!run("COMMIT")) return failure("write");
    return Status::ok();
  }

 private:
  Status failure(const char* what) const {
    return Status::error(fmt::format("database '{}': cannot {} '{}': {}", database_.name.value,
                                     what, path_, sqlite3_errmsg(handle_.get())));
  }
  bool run(const std::string& sql) {
    return sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK;
  }

  std::string type_of(const std::string& name) const {
    if (rows_.empty()) return "NoneType";
    std::string type = value_of(rows_.front(), name).type_name();
    return type == "str" ? "text" : type;
  }

  std::string create_statement() const {
    std::string columns;
    for (const Column& column : database_.keys) {
      if (!columns.empty()) columns += ", ";
      columns += quoted(column.column_title()) + " " + type_of(column.name.value);
    }
    std::string primary;
    for (const std::string& key : database_.primary_keys)
      primary += (primary.empty() ? "" : ", ") + quoted(key);
    if (!primary.empty()) columns += ", PRIMARY KEY (" + primary + ")";
    return "CREATE TABLE IF NOT EXISTS " + quoted(database_.name.value) + " (" + columns + ")";
  }

  // Adapts the columns of the table, which may come from an older version of the input.
  Status match_columns() {
    std::set<std::string> there;
    sqlite3_stmt* raw = nullptr;
    std::string sql = "PRAGMA table_info(" + quoted(database_.name.value) + ")";
    if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
      return failure("read the table of");
    }
    Statement statement(raw);
    while (sqlite3_step(raw) == SQLITE_ROW) {
      there.insert(reinterpret_cast<const char*>(sqlite3_column_text(raw, 1)));
    }
    statement.reset();
    std::string alter = "ALTER TABLE " + quoted(database_.name.value);
    for (const Column& column : database_.keys) {
      const std::string& title = column.column_title();
      if (there.erase(title) != 0) continue;
      if (!run(alter + " ADD COLUMN " + quoted(title) + " " + type_of(column.name.value))) {
        return failure("add a column in");
      }
    }
    for (const std::string& name : there) {
      if (!run(alter + " DROP COLUMN " + quoted(name))) return failure("drop a column in");
    }
    return Status::ok();
  }

  Status insert() {
    std::string names;
    std::string marks;
    for (const Column& column : database_.keys) {
      names += (names.empty() ? "" : ", ") + quoted(column.column_title());
      marks += marks.empty() ? "?" : ", ?";
    }
    std::string sql =
        "REPLACE INTO " + quoted(database_.name.value) + " (" + names + ") VALUES (" + marks + ")";
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
      return failure("write");
    }
    Statement statement(raw);
    for (const Record& row : rows_) {
      for (size_t i = 0; i < database_.keys.size(); ++i) {
        bind(raw, static_cast<int>(i) + 1, value_of(row, database_.keys[i].name.value));
      }
      if (sqlite3_step(raw) != SQLITE_DONE) return failure("write a row of");
      sqlite3_reset(raw);
    }
    return Status::ok();
  }

  static void bind(sqlite3_stmt* statement, int at, const Value& value) {
    if (const auto* whole = std::get_if<long long>(&value.data)) {
      sqlite3_bind_int64(statement, at, *whole);
    } else if (const auto* number = std::get_if<double>(&value.data)) {
      sqlite3_bind_double(statement, at, *number);
    } else if (value.none()) {
      sqlite3_bind_null(statement, at);
    } else {
      std::string text = value.str();
      sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()),
                        SQLITE_TRANSIENT);
    }
  }

  const Database& database_;
  const std::vector<Record>& rows_;
  std::string path_;
  Handle handle_;
};

}  // namespace

Status write_database(const Database& database, const std::vector<Record>& rows,
                      const std::string& path) {
  return Writer(database, rows, path).write();
}

}  // namespace tally
