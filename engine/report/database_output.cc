#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/base/text.h"
#include "engine/report/report.h"

namespace tally {
namespace {

struct Close {
  void operator()(sqlite3* database) const { sqlite3_close(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Handle = std::unique_ptr<sqlite3, Close>;
using SqlStatement = std::unique_ptr<sqlite3_stmt, Finalize>;

constexpr const char* kRunColumn = "tally_run";

std::string quoted(const std::string& name) {
  std::string out = "\"";
  for (char c : name) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

class Writer {
 public:
  Writer(const Database& database, const ResultTable& table, const std::string& path,
         const std::string* run_key)
      : database_(database),
        columns_(table.columns),
        rows_(table.rows),
        path_(path),
        run_key_(run_key) {}

  Status write() {
    if (run_key_ != nullptr && !marks_rows()) TRY(check_primary_keys());
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
    TRY(match_columns());
    TRY(run_key_ == nullptr ? insert() : replace_own_rows());
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

  // JUBE's: the type of the first row's value. Ours: that of all, and none where they differ: such a
  // column keeps values as they are, whereas a number's type would turn the text 0012 into 12, and
  // round a whole number beyond 64 bits, which is written as a text.
  std::string type_of(const TableColumn& column) const {
    if (run_key_ == nullptr) {
      if (rows_.empty()) return "NoneType";
      std::string type = rows_.front().values.at(column.info.name).type_name();
      return type == "str" ? "text" : type;
    }
    switch (column.info.type) {
      case ColumnType::integer:
        return "int";
      case ColumnType::floating:
        return "float";
      case ColumnType::text:
        return "text";
      default:
        return "";
    }
  }

  bool marks_rows() const { return run_key_ != nullptr && database_.primary_keys.empty(); }

  std::string create_statement() const {
    std::string columns;
    for (const TableColumn& column : columns_) {
      if (!columns.empty()) columns += ", ";
      columns += quoted(column.info.title) + " " + type_of(column);
    }
    if (marks_rows()) columns += ", " + quoted(kRunColumn) + " text";
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
    SqlStatement statement(raw);
    while (sqlite3_step(raw) == SQLITE_ROW) {
      there.insert(reinterpret_cast<const char*>(sqlite3_column_text(raw, 1)));
    }
    statement.reset();
    std::string alter = "ALTER TABLE " + quoted(database_.name.value);
    for (const TableColumn& column : columns_) {
      const std::string& title = column.info.title;
      if (there.erase(title) != 0) continue;
      if (!run(alter + " ADD COLUMN " + quoted(title) + " " + type_of(column))) {
        return failure("add a column in");
      }
    }
    if (marks_rows() && there.erase(kRunColumn) == 0 &&
        !run(alter + " ADD COLUMN " + quoted(kRunColumn) + " text"))
      return failure("add a column in");
    if (run_key_ != nullptr) return Status::ok();  // the other columns are somebody's data
    for (const std::string& name : there) {
      if (!run(alter + " DROP COLUMN " + quoted(name))) return failure("drop a column in");
    }
    return Status::ok();
  }

  bool prepare(const std::string& sql, SqlStatement* out) {
    sqlite3_stmt* raw = nullptr;
    const int code = sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &raw, nullptr);
    out->reset(raw);
    return code == SQLITE_OK;
  }

  // Runs a statement whose ?1, ?2, ... are the row's values, and perhaps the run's key behind them.
  bool step(const SqlStatement& statement, const Record& row, bool with_run) {
    sqlite3_stmt* raw = statement.get();
    const int count = static_cast<int>(columns_.size());
    for (int i = 0; i < count; ++i)
      bind(raw, i + 1, row.values.at(columns_[static_cast<size_t>(i)].info.name));
    if (with_run) bind(raw, count + 1, Value{*run_key_});
    const bool done = sqlite3_step(raw) == SQLITE_DONE;
    sqlite3_reset(raw);
    return done;
  }

  // "a" = ?1, "b" = ?2: all columns, or with `keys` the primary keys, as a condition.
  std::string assignments(bool keys) const {
    std::string text;
    const std::vector<std::string>& primary = database_.primary_keys;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string& title = columns_[i].info.title;
      if (keys && !contains(primary, title)) continue;
      const char* between = keys ? " AND " : ", ";
      text += fmt::format("{}{} {} ?{}", text.empty() ? "" : between, quoted(title),
                          keys ? "IS" : "=", i + 1);
    }
    return text;
  }

  // Rows of one result with equal primary keys would replace each other. Ok if there are none.
  Status check_primary_keys() const {
    std::map<std::vector<std::string>, size_t> seen;
    for (const Record& row : rows_) {
      std::vector<std::string> key;
      std::string shown;
      for (const TableColumn& column : columns_) {
        const std::vector<std::string>& primary = database_.primary_keys;
        if (!contains(primary, column.info.title)) continue;
        const Value& value = row.values.at(column.info.name);
        key.push_back(fmt::format("{} {}", value.type_name(), value.str()));
        shown +=
            fmt::format("{}{} = {}", shown.empty() ? "" : ", ", column.info.title, value.str());
      }
      if (++seen[key] == 2)
        return Status::error(fmt::format(
            "several rows of the database '{}' have the same `primekeys` ({}), and each would "
            "replace the one before; add the keys that tell them apart",
            database_.name.value, shown));
    }
    return Status::ok();
  }

  // A row with the primary keys of an older one changes that row. Also in a table that was made
  // without them: an index makes them quick to find.
  Status replace_own_rows() {
    const std::string table = quoted(database_.name.value);
    const bool marked = marks_rows();
    std::string names, values;
    for (size_t i = 0; i < columns_.size(); ++i) {
      names += (names.empty() ? "" : ", ") + quoted(columns_[i].info.title);
      values += fmt::format("{}?{}", values.empty() ? "" : ", ", i + 1);
    }
    if (marked) {
      names += ", " + quoted(kRunColumn);
      values += fmt::format(", ?{}", columns_.size() + 1);
    }
    SqlStatement insertion, change;
    if (!prepare("INSERT INTO " + table + " (" + names + ") VALUES (" + values + ")", &insertion))
      return failure("write");
    if (marked) {
      if (!prepare("DELETE FROM " + table + " WHERE " + quoted(kRunColumn) + " = ?", &change))
        return failure("write");
      bind(change.get(), 1, Value{*run_key_});
      if (sqlite3_step(change.get()) != SQLITE_DONE) return failure("replace rows of");
    } else {
      std::string keys;
      for (const std::string& key : database_.primary_keys)
        keys += (keys.empty() ? "" : ", ") + quoted(key);
      const std::string index = quoted(database_.name.value + " by " + keys);
      if (!run("CREATE INDEX IF NOT EXISTS " + index + " ON " + table + " (" + keys + ")") ||
          !prepare("UPDATE " + table + " SET " + assignments(false) + " WHERE " + assignments(true),
                   &change))
        return failure("find rows by `primekeys` in");
    }
    for (const Record& row : rows_) {
      if (!marked) {
        if (!step(change, row, false)) return failure("write a row of");
        if (sqlite3_changes(handle_.get()) != 0) continue;
      }
      if (!step(insertion, row, marked)) return failure("write a row of");
    }
    return Status::ok();
  }

  Status insert() {
    std::string names;
    std::string marks;
    for (const TableColumn& column : columns_) {
      names += (names.empty() ? "" : ", ") + quoted(column.info.title);
      marks += marks.empty() ? "?" : ", ?";
    }
    std::string sql =
        "REPLACE INTO " + quoted(database_.name.value) + " (" + names + ") VALUES (" + marks + ")";
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(handle_.get(), sql.c_str(), -1, &raw, nullptr) != SQLITE_OK) {
      return failure("write");
    }
    SqlStatement statement(raw);
    for (const Record& row : rows_) {
      for (size_t i = 0; i < columns_.size(); ++i) {
        bind(raw, static_cast<int>(i) + 1, row.values.at(columns_[i].info.name));
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
  const std::vector<TableColumn>& columns_;
  const std::vector<Record>& rows_;
  std::string path_;
  const std::string* run_key_;
  Handle handle_;
};

}  // namespace

Status write_database(const Database& database, const ResultTable& table, const std::string& path,
                      const std::string* run_key) {
  return Writer(database, table, path, run_key).write();
}

}  // namespace tally
