#include "engine/journal/tables.h"

#include "engine/journal/journal_files.h"

namespace tally {
namespace {

// make_machine_tables() has the later additions of version 2.
constexpr const char* schema = R"(
CREATE TABLE run(id INTEGER, benchmark TEXT, comment TEXT, input_file TEXT, start TEXT, change TEXT,
  version TEXT, home TEXT, directory TEXT, from_run TEXT);
CREATE TABLE run_tag(position INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE run_setting(position INTEGER PRIMARY KEY, name TEXT, value TEXT);
CREATE TABLE run_include_path(position INTEGER PRIMARY KEY, path TEXT);
CREATE TABLE update_source(position INTEGER PRIMARY KEY, path TEXT, text BLOB);
CREATE TABLE source(position INTEGER PRIMARY KEY, path TEXT, text BLOB);
CREATE TABLE package(
  id INTEGER PRIMARY KEY, step_index INTEGER, step TEXT, directory TEXT, work_dir TEXT,
  iteration INTEGER, cycle INTEGER, parents TEXT, state INTEGER,
  reason TEXT, exit_code INTEGER, signal INTEGER, workpackage INTEGER,
  command TEXT, command_directory TEXT, file TEXT, detail TEXT,
  place_file TEXT, place_line INTEGER, place_column INTEGER,
  parameters BLOB, indices BLOB, prepared INTEGER DEFAULT 0, operations_done INTEGER DEFAULT 0,
  environment BLOB, outputs BLOB, job_name TEXT, job_id TEXT, started REAL DEFAULT 0, ended REAL DEFAULT 0);
CREATE TABLE setup(package INTEGER PRIMARY KEY, hash TEXT, instance TEXT);
PRAGMA user_version=2;
)";

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Writes one row for each entry, in order. The columns of `table` are position and one or two
// texts.
Status write_list(SqliteDatabase& database, const char* table, const Pairs& list, bool two) {
  const std::string name = table;
  TRY(database.run(("DELETE FROM " + name).c_str()));
  Statement insert;
  const std::string sql = "INSERT INTO " + name + (two ? " VALUES(?,?,?)" : " VALUES(?,?)");
  TRY(insert.prepare(database, sql.c_str()));
  for (size_t i = 0; i < list.size(); ++i) {
    insert.bind(1, static_cast<long long>(i)).bind(2, list[i].first);
    if (two) insert.bind_blob(3, list[i].second);
    TRY(insert.run());
  }
  return Status::ok();
}

Pairs with_nothing(const std::vector<std::string>& texts) {
  Pairs list;
  for (const std::string& text : texts) list.emplace_back(text, std::string());
  return list;
}

Status read_texts(SqliteDatabase& database, const char* sql, std::vector<std::string>* texts) {
  texts->clear();
  Statement all;
  TRY(all.prepare(database, sql));
  while (all.row()) texts->push_back(all.text(0));
  return all.status();
}

}  // namespace

Status make_tables(SqliteDatabase& database) {
  return database.run(schema);
}

Status read_version(SqliteDatabase& database, int* version) {
  Statement asked;
  TRY(asked.prepare(database, "PRAGMA user_version"));
  *version = asked.row() ? static_cast<int>(asked.integer(0)) : 0;
  return asked.status();
}

Status read_pairs(SqliteDatabase& database, const char* sql, Pairs* pairs) {
  pairs->clear();
  Statement all;
  TRY(all.prepare(database, sql));
  while (all.row()) pairs->emplace_back(all.text(0), all.text(1));
  return all.status();
}

Status write_run(SqliteDatabase& database, const RunRecord& run) {
  TRY(database.run("DELETE FROM run"));
  Statement insert;
  TRY(insert.prepare(database,
                     "INSERT INTO run(id,benchmark,comment,input_file,start,change,"
                     "version,home,directory,from_run) VALUES(?,?,?,?,?,?,?,?,?,?)"));
  insert.bind(1, run.id)
      .bind(2, run.benchmark)
      .bind(3, run.comment)
      .bind(4, run.input_file)
      .bind(5, run.start)
      .bind(6, run.change)
      .bind(7, run.version)
      .bind(8, run.home)
      .bind(9, run.directory)
      .bind(10, run.directory_from_run);
  TRY(insert.run());
  if (run.plain_as_written) {
    TRY(database.run("CREATE TABLE IF NOT EXISTS run_plain_as_written(one INTEGER)"));
  }
  TRY(write_list(database, "run_tag", with_nothing(run.tags), false));
  TRY(write_list(database, "run_setting", run.set, true));
  return write_list(database, "run_include_path", with_nothing(run.include_path), false);
}

Status read_run(SqliteDatabase& database, RunRecord* run) {
  Statement row;
  TRY(row.prepare(database,
                  "SELECT id,benchmark,comment,input_file,start,change,version,home,"
                  "directory,from_run FROM run"));
  if (row.row()) {
    run->id = static_cast<int>(row.integer(0));
    run->benchmark = row.text(1);
    run->comment = row.text(2);
    run->input_file = row.text(3);
    run->start = row.text(4);
    run->change = row.text(5);
    run->version = row.text(6);
    run->home = row.text(7);
    run->directory = row.text(8);
    run->directory_from_run = row.text(9);
    if (row.row()) return Status::ok();  // always the case: run holds one row
  }
  if (!row.status()) return row.status();
  TRY(has_table(database, "run_plain_as_written", &run->plain_as_written));
  TRY(read_texts(database, "SELECT name FROM run_tag ORDER BY position", &run->tags));
  TRY(read_pairs(database, "SELECT name, value FROM run_setting ORDER BY position", &run->set));
  return read_texts(database, "SELECT path FROM run_include_path ORDER BY position",
                    &run->include_path);
}

// The first row has the file as it was given, and as its text the tags. Version 0.2.0 left that
// text empty and does not read it. The other rows have the texts of the file and of its includes.
Status write_update(SqliteDatabase& database, const Journal::Update& update) {
  Pairs rows = {{update.file, pack(update.tags)}};
  rows.insert(rows.end(), update.texts.begin(), update.texts.end());
  return write_list(database, "update_source", rows, true);
}

Status read_update(SqliteDatabase& database, Journal::Update* update) {
  update->file.clear();
  Pairs& rows = update->texts;
  TRY(read_pairs(database, "SELECT path, text FROM update_source ORDER BY position", &rows));
  if (rows.empty()) return Status::ok();
  update->file = rows.front().first;
  if (!rows.front().second.empty()) update->tags = unpack(rows.front().second);
  rows.erase(rows.begin());
  return Status::ok();
}

}  // namespace tally
