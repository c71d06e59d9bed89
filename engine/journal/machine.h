// The journal's tables about the machine and its jobs.
#pragma once

#include "engine/base/status.h"
#include "engine/journal/database.h"

namespace tally {

// Whether the database has the table: journals of earlier versions do not.
Status has_table(SqliteDatabase& database, const char* table, bool* has);
// Makes the tables if the journal has none yet.
Status make_machine_tables(SqliteDatabase& database);

}  // namespace tally
