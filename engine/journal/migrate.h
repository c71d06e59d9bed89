// Journals of earlier versions, brought to this one.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/journal/database.h"
#include "engine/workpackage/outcome.h"

namespace tally {

// The journal's version in the database: PRAGMA user_version.
constexpr int journal_version = 2;
// The tables of this version, empty.
Status make_tables(SqliteDatabase& database);
// The version that a database has; 0 of an empty one.
Status read_version(SqliteDatabase& database, int* version);
// Version 1 (tally 0.1.0 up to November 2026): outcomes in sentences, a table of keys. In one
// transaction: afterwards the database is of this version, or, when that failed, as it was.
Status migrate_from_1(SqliteDatabase& database);

// What a sentence of version 1 says. message() of it is the sentence again.
Outcome outcome_of_note(State state, const std::string& note);

}  // namespace tally
