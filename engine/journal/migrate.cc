#include "engine/journal/migrate.h"

#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include "engine/journal/outcome_columns.h"
#include "engine/journal/parts.h"
#include "engine/journal/run_tables.h"

namespace tally {
namespace {

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

// Parses "bench.yaml:12:5".
FilePlace parse_place(const std::string& text) {
  const size_t column = text.rfind(':');
  const size_t line =
      column == std::string::npos || column == 0 ? column : text.rfind(':', column - 1);
  if (line == std::string::npos) return {};
  return {text.substr(0, line),
          static_cast<uint32_t>(strtoul(text.c_str() + line + 1, nullptr, 10)),
          static_cast<uint32_t>(strtoul(text.c_str() + column + 1, nullptr, 10))};
}

Status migrate_outcomes(SqliteDatabase& database) {
  Statement notes;
  Statement put;
  if (Status s =
          notes.prepare(database,
                        "SELECT id, state, note, (SELECT value FROM shared_1 WHERE key='place "
                        "of '||id) FROM package_1");
      !s) {
    return s;
  }
  const std::string sql =
      std::string("UPDATE package SET ") + outcome_assignments(2) + " WHERE id=?1";
  if (Status s = put.prepare(database, sql.c_str()); !s) return s;
  while (notes.row()) {
    const Outcome outcome = outcome_of_note(static_cast<State>(notes.integer(1)), notes.text(2));
    const FilePlace place = parse_place(notes.text(3));
    bind_outcome(put.bind(1, notes.integer(0)), 2, outcome, place);
    if (Status s = put.run(); !s) return s;
  }
  return notes.status();
}

// The value of a key. Empty when there is none.
Status value_of(SqliteDatabase& database, const char* table, const char* key, std::string* value) {
  value->clear();
  Statement asked;
  const std::string sql = "SELECT value FROM " + std::string(table) + " WHERE key=?";
  if (Status s = asked.prepare(database, sql.c_str()); !s) return s;
  asked.bind(1, std::string_view(key));
  if (!asked.row()) return asked.status();
  *value = asked.text(0);
  return Status::ok();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Status migrate_run(SqliteDatabase& database) {
  RunRecord run;
  std::string id, tags, set, include_path, directory;
  struct Kept {
    const char* table;
    const char* key;
    std::string* value;
  };
  const Kept all[] = {{"run_1", "id", &id},
                      {"run_1", "benchmark", &run.benchmark},
                      {"run_1", "comment", &run.comment},
                      {"run_1", "tags", &tags},
                      {"run_1", "input_file", &run.input_file},
                      {"run_1", "start", &run.start},
                      {"run_1", "change", &run.change},
                      {"run_1", "version", &run.version},
                      {"run_1", "home", &run.home},
                      {"run_1", "set", &set},
                      {"shared_1", "cli:include-path", &include_path},
                      {"shared_1", "cli:directory", &directory}};
  for (const Kept& kept : all) {
    if (Status s = value_of(database, kept.table, kept.key, kept.value); !s) return s;
  }
  run.id = static_cast<int>(strtol(id.c_str(), nullptr, 10));
  run.tags = unpack(tags);
  for (const std::string& entry : unpack(set)) {
    const size_t equals = entry.find('=');
    run.set.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
  }
  run.include_path = lines_of(include_path);
  if (const std::vector<std::string> lines = lines_of(directory); lines.size() == 2) {
    run.directory = lines[0];
    run.directory_from_run = lines[1];
  }
  run.plain_as_written = false;
  return write_run(database, run);
}

// Version 1 stored a list of texts: for each its length, a newline and the text. The first is the
// file as it was given; then come path and text of every file.
Status migrate_update(SqliteDatabase& database) {
  std::string packed;
  if (Status s = value_of(database, "shared_1", "cli:update", &packed); !s) return s;
  std::vector<std::string> texts;
  for (size_t at = 0; at < packed.size();) {
    const size_t line = packed.find('\n', at);
    if (line == std::string::npos) break;
    const size_t size = strtoul(packed.c_str() + at, nullptr, 10);
    texts.push_back(packed.substr(line + 1, size));
    at = line + 1 + size;
  }
  if (texts.empty()) return Status::ok();
  Journal::Update update;
  update.file = texts[0];
  for (size_t i = 1; i + 1 < texts.size(); i += 2)
    update.texts.emplace_back(texts[i], texts[i + 1]);
  return write_update(database, update);
}

Status migrate_tables(SqliteDatabase& database) {
  constexpr const char* aside =
      "ALTER TABLE package RENAME TO package_1;"
      "ALTER TABLE run RENAME TO run_1;"
      "ALTER TABLE source RENAME TO source_1;"
      "ALTER TABLE shared RENAME TO shared_1";
  if (Status s = database.run(aside); !s) return s;
  if (Status s = make_tables(database); !s) return s;
  constexpr const char* copy =
      "INSERT INTO package(id,step_index,step,directory,work_dir,iteration,cycle,parents,state,"
      "parameters,indices,prepared,operations_done,environment,outputs,job_name,job_id,started,"
      "ended) SELECT id,step_index,step,directory,work_dir,iteration,cycle,parents,state,"
      "parameters,indices,prepared,operations_done,environment,outputs,job_name,job_id,started,"
      "ended FROM package_1;"
      "INSERT INTO source SELECT position, path, text FROM source_1";
  if (Status s = database.run(copy); !s) return s;
  if (Status s = migrate_outcomes(database); !s) return s;
  if (Status s = migrate_run(database); !s) return s;
  if (Status s = migrate_update(database); !s) return s;
  // Its keys of setup steps are not converted, because they say less than those of this version.
  return database.run(
      "DROP TABLE package_1; DROP TABLE run_1; DROP TABLE source_1; DROP TABLE shared_1");
}

// Takes the part of `note` from `at` up to `end` and moves `at` behind `end`.
bool take_until(const std::string& note, const char* end, size_t* at, RareText* part) {
  const size_t found = note.find(end, *at);
  if (found == std::string::npos) return false;
  *part = note.substr(*at, found - *at);
  *at = found + std::char_traits<char>::length(end);
  return true;
}

bool take_word(const std::string& note, const char* word, size_t* at) {
  const size_t length = std::char_traits<char>::length(word);
  if (note.compare(*at, length, word) != 0) return false;
  *at += length;
  return true;
}

bool parse_command(const std::string& note, Outcome* outcome) {
  size_t at = 0;
  Outcome o = failure(Reason::command, "");
  if (!take_word(note, "Error (returncode <> 0) while running \"", &at) ||
      !take_until(note, "\" in directory \"", &at, &o.command) ||
      !take_until(note, "\"\nMessage in \"", &at, &o.directory) ||
      !take_until(note, "\":\n", &at, &o.file)) {
    return false;
  }
  o.exit_code = -1;
  std::string detail = note.substr(at);
  constexpr const char* by_signal = "It was ended by signal ";
  const size_t signal = detail.rfind(by_signal);
  if (signal != std::string::npos && (signal == 0 || detail[signal - 1] == '\n') &&
      detail.back() == ')') {
    o.signal = static_cast<int>(
        strtol(detail.c_str() + signal + std::char_traits<char>::length(by_signal), nullptr, 10));
    o.reason = Reason::signal;
    o.exit_code = 0;
    detail.resize(signal);
  }
  o.detail = std::move(detail);
  *outcome = std::move(o);
  return true;
}

bool parse_error_file(const std::string& note, Outcome* outcome) {
  size_t at = 0;
  Outcome o = failure(Reason::error_file, "");
  if (!take_word(note, "Error file \"", &at) ||
      !take_until(note, "\" found after running the command \"", &at, &o.file) ||
      note.size() < at + 2 || note.compare(note.size() - 2, 2, "\".") != 0) {
    return false;
  }
  o.command = note.substr(at, note.size() - 2 - at);
  *outcome = std::move(o);
  return true;
}

bool parse_time_limit(const std::string& note, Outcome* outcome) {
  size_t at = 0;
  Outcome o = failure(Reason::time_limit, "");
  if (!take_word(note, "time limit of ", &at) ||
      !take_until(note, " reached while running \"", &at, &o.detail) ||
      !take_until(note, "\" in directory \"", &at, &o.command) || note.size() < at + 1 ||
      note.back() != '"') {
    return false;
  }
  o.directory = note.substr(at, note.size() - 1 - at);
  *outcome = std::move(o);
  return true;
}

bool parse_job(const std::string& note, Outcome* outcome) {
  size_t at = 0;
  Outcome o = failure(Reason::job_exit, "");
  std::string code;
  if (!take_word(note, "the job's program ended with exit code ", &at)) return false;
  const size_t output = note.rfind("; its output is in \"");
  if (output == std::string::npos || note.back() != '"') return false;
  const size_t colon = note.find(": ", at);
  o.exit_code = static_cast<int>(strtol(note.c_str() + at, nullptr, 10));
  if (colon < output) o.detail = note.substr(colon + 2, output - colon - 2);
  at = output + std::char_traits<char>::length("; its output is in \"");
  o.directory = note.substr(at, note.size() - 1 - at);
  *outcome = std::move(o);
  return true;
}

bool parse_other_workpackage(const std::string& note, const char* start, Outcome* outcome) {
  size_t at = 0;
  if (!take_word(note, start, &at)) return false;
  char* end = nullptr;
  const long number = strtol(note.c_str() + at, &end, 10);
  if (end == note.c_str() + at || *end != '\0') return false;
  outcome->workpackage = static_cast<int>(number);
  return true;
}

Outcome of_failed(const std::string& note) {
  Outcome outcome;
  if (parse_command(note, &outcome) || parse_error_file(note, &outcome) ||
      parse_time_limit(note, &outcome) || parse_job(note, &outcome)) {
    return outcome;
  }
  outcome = failure(Reason::shared_failed, "");
  if (parse_other_workpackage(note, "shared operation failed in workpackage ", &outcome)) {
    return outcome;
  }
  return failure(Reason::other, note);
}

Outcome of_waiting(const std::string& note) {
  if (note == message(in_state(State::waiting, Reason::before_shared))) {
    return in_state(State::waiting, Reason::before_shared);
  }
  Outcome outcome = in_state(State::waiting, Reason::done_file);
  constexpr std::string_view start = "waits for \"";
  if (note.rfind(start, 0) == 0 && note.size() > start.size() && note.back() == '"') {
    outcome.file = note.substr(start.size(), note.size() - start.size() - 1);
  }
  return outcome;
}

Outcome of_done(const std::string& note) {
  Outcome outcome = in_state(State::done, Reason::reused);
  if (parse_other_workpackage(
          note, "reused: commands, environment and files are those of workpackage ", &outcome)) {
    return outcome;
  }
  size_t at = 0;
  if (!take_word(note, "reused: commands, environment and files are ", &at)) {
    outcome.reason = Reason::other;
  }
  outcome.detail = note.substr(at);
  return outcome;
}

// Parses one of a few fixed sentences.
Outcome of_fixed(State state, const std::string& note) {
  for (const Reason reason : {Reason::expected_memory, Reason::expected_time_limit,
                              Reason::expected_check, Reason::interrupted, Reason::job_withdrawn}) {
    if (note == message(in_state(state, reason))) return in_state(state, reason);
  }
  Outcome outcome = in_state(state, Reason::other);
  outcome.detail = note;
  return outcome;
}

}  // namespace

Outcome outcome_of_note(State state, const std::string& note) {
  if (state == State::waiting) return of_waiting(note);
  if (note.empty()) return in_state(state, state == State::failed ? Reason::other : Reason::none);
  if (state == State::failed) return of_failed(note);
  if (state == State::done) return of_done(note);
  if (state != State::lost) return of_fixed(state, note);
  Outcome outcome = in_state(state, Reason::job_lost);
  outcome.detail = note;
  return outcome;
}

Status make_tables(SqliteDatabase& database) {
  return database.run(schema);
}

Status read_version(SqliteDatabase& database, int* version) {
  Statement asked;
  if (Status s = asked.prepare(database, "PRAGMA user_version"); !s) return s;
  *version = asked.row() ? static_cast<int>(asked.integer(0)) : 0;
  return asked.status();
}

Status migrate_from_1(SqliteDatabase& database) {
  if (Status s = database.run("BEGIN"); !s) return s;
  Status status = migrate_tables(database);
  if (status) status = database.run("COMMIT");
  if (status) return status;
  const Status undone = database.run("ROLLBACK");
  (void)static_cast<bool>(undone);
  return status;
}

}  // namespace tally
