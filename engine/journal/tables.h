// The journal's tables, and those of the run's own record: the settings that it was started with.
#pragma once

#include "engine/base/status.h"
#include "engine/journal/database.h"
#include "engine/journal/journal.h"

namespace tally {

// The journal's version in the database: PRAGMA user_version.
constexpr int journal_version = 2;
// Makes the empty tables of this version.
Status make_tables(SqliteDatabase& database);
// Makes the tables that version 2 has got since, if there are none yet.
Status make_machine_tables(SqliteDatabase& database);
// Whether the database has the table: journals of earlier programs do not.
Status has_table(SqliteDatabase& database, const char* table, bool* has);
// Reads the version of a database. It is 0 for an empty one.
Status read_version(SqliteDatabase& database, int* version);

// Replaces the existing record, as part of the caller's transaction.
Status write_run(SqliteDatabase& database, const RunRecord& run);
Status read_run(SqliteDatabase& database, RunRecord* run);
Status write_update(SqliteDatabase& database, const Journal::Update& update);
// Leaves the tags as they are if the update was written by a version that did not keep them.
Status read_update(SqliteDatabase& database, Journal::Update* update);
// Reads rows of two texts, ordered by position.
Status read_pairs(SqliteDatabase& database, const char* sql,
                  std::vector<std::pair<std::string, std::string>>* pairs);

}  // namespace tally
