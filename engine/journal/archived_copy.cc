#include "engine/journal/archived_copy.h"

#include <utility>
#include <vector>

#include "engine/journal/database.h"
#include "engine/journal/tables.h"

namespace tally {
namespace {

std::string quoted(const std::string& name) {
  return "\"" + name + "\"";
}

Status texts_of(SqliteDatabase& database, const std::string& sql, int column,
                std::vector<std::string>* texts) {
  Statement all;
  TRY(all.prepare(database, sql.c_str()));
  while (all.row()) texts->push_back(all.text(column));
  return all.status();
}

// The columns that name a row. Tables without a primary key, and those that SQLite gives a number
// to each row, have rowid.
Status key_of(SqliteDatabase& database, const std::string& table, std::vector<std::string>* key) {
  *key = {"rowid"};
  Statement rows;
  if (rows.prepare(database, ("SELECT rowid FROM " + quoted(table) + " LIMIT 0").c_str()))
    return Status::ok();
  key->clear();
  return texts_of(database,
                  "SELECT name FROM pragma_table_info('" + table + "') WHERE pk>0 ORDER BY pk", 0,
                  key);
}

// Cleans the texts and bytes of one column. A value that becomes another one of the key would take
// its row's place: asterisks keep the length, and two secrets of one length in one key are no case.
Status clean_column(SqliteDatabase& database, const std::string& table, const std::string& column,
                    const std::function<bool(std::string*)>& clean) {
  std::vector<std::string> key;
  TRY(key_of(database, table, &key));
  std::string select = "SELECT " + quoted(column) + ", typeof(" + quoted(column) + ")", where;
  for (size_t i = 0; i < key.size(); ++i) {
    select += ", " + key[i];
    where += (i == 0 ? " WHERE " : " AND ") + key[i] + "=?" + std::to_string(i + 2);
  }
  Statement rows, update;
  TRY(rows.prepare(database, (select + " FROM " + quoted(table)).c_str()));
  struct Change {
    std::string value;
    bool blob;
    std::vector<std::string> key;
  };
  std::vector<Change> changes;
  while (rows.row()) {
    const std::string type = rows.text(1);
    if (type != "text" && type != "blob") continue;
    Change change{rows.text(0), type == "blob", {}};
    if (!clean(&change.value)) continue;
    for (size_t i = 0; i < key.size(); ++i)
      change.key.push_back(rows.text(static_cast<int>(i) + 2));
    changes.push_back(std::move(change));
  }
  TRY(Status(rows.status()));
  const std::string set = "UPDATE " + quoted(table) + " SET " + quoted(column) + "=?1" + where;
  TRY(update.prepare(database, set.c_str()));
  for (const Change& change : changes) {
    if (change.blob) {
      update.bind_blob(1, change.value);
    } else {
      update.bind(1, std::string_view(change.value));
    }
    for (size_t i = 0; i < change.key.size(); ++i)
      update.bind(static_cast<int>(i) + 2, std::string_view(change.key[i]));
    TRY(update.run());
  }
  return Status::ok();
}

Status clean_all(SqliteDatabase& database, const std::function<bool(std::string*)>& clean) {
  std::vector<std::string> tables;
  TRY(texts_of(database, "SELECT name FROM sqlite_master WHERE type='table' ORDER BY name", 0,
               &tables));
  for (const std::string& table : tables) {
    std::vector<std::string> columns;
    TRY(texts_of(database, "SELECT name FROM pragma_table_info('" + table + "')", 0, &columns));
    for (const std::string& column : columns) TRY(clean_column(database, table, column, clean));
  }
  return Status::ok();
}

Status place_all(SqliteDatabase& database, const ArchivedCopy& how) {
  bool has = false;
  if (Status s = has_table(database, "ended_files", &has); !s || !has) return s;
  std::vector<std::pair<int, std::string>> all;
  Statement rows, update;
  TRY(rows.prepare(database, "SELECT package, packed FROM ended_files ORDER BY package"));
  while (rows.row()) all.emplace_back(static_cast<int>(rows.integer(0)), rows.text(1));
  TRY(Status(rows.status()));
  TRY(update.prepare(database, "UPDATE ended_files SET packed=?1 WHERE package=?2"));
  for (const auto& [workpackage, packed] : all) {
    EndedFiles files = EndedFiles::unpacked(packed);
    TRY(how.place(workpackage, &files));
    const std::string now = files.packed();
    update.bind_blob(1, now).bind(2, workpackage);
    TRY(update.run());
  }
  return Status::ok();
}

Status note_origin(SqliteDatabase& database, const std::string& run_dir) {
  TRY(database.run("CREATE TABLE IF NOT EXISTS archived(run_dir TEXT); DELETE FROM archived"));
  Statement put;
  TRY(put.prepare(database, "INSERT INTO archived VALUES(?)"));
  return put.bind(1, std::string_view(run_dir)).run();
}

}  // namespace

Status forget_origin(const std::string& path) {
  SqliteDatabase database;
  TRY(database.open(path, SQLITE_OPEN_READWRITE, path));
  return database.run("DROP TABLE IF EXISTS archived");
}

Status write_archived_copy(const Journal& journal, const std::string& path,
                           const ArchivedCopy& how) {
  TRY(journal.copy_to(path));
  SqliteDatabase database;
  TRY(database.open(path, SQLITE_OPEN_READWRITE, path));
  for (const char* sql : {"PRAGMA journal_mode=MEMORY", "PRAGMA secure_delete=ON", "BEGIN"})
    TRY(database.run(sql));
  // An archive that was unpacked and is archived again is still of the first folder.
  std::string origin;
  TRY(journal.archived_from(&origin));
  if (origin.empty()) TRY(note_origin(database, how.run_dir));
  TRY(place_all(database, how));
  TRY(clean_all(database, how.clean));
  TRY(database.run("COMMIT"));
  return database.run("VACUUM");
}

}  // namespace tally
