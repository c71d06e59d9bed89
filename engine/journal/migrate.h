// Converts journals of earlier versions to the current version.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/journal/database.h"
#include "engine/workpackage/outcome.h"

namespace tally {

// The journal's version in the database: PRAGMA user_version.
constexpr int journal_version = 2;
// Makes the empty tables of this version.
Status make_tables(SqliteDatabase& database);
// Reads the version of a database. It is 0 for an empty one.
Status read_version(SqliteDatabase& database, int* version);
// Converts from version 1 (tally 0.1.0 up to November 2026), which had outcomes as sentences and a
// table of keys. Runs in one transaction. If it fails, the database is unchanged.
Status migrate_from_1(SqliteDatabase& database);

// Parses a sentence of version 1. message() of the result gives the same sentence.
Outcome outcome_of_note(State state, const std::string& note);

}  // namespace tally
