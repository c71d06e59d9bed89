// The tables of a run's own record: the settings that it was started with.
#pragma once

#include "engine/base/status.h"
#include "engine/journal/database.h"
#include "engine/journal/journal.h"

namespace tally {

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
