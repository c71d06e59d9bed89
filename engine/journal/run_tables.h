// The tables of a run's own record: the settings that it was started with.
#pragma once

#include "engine/base/status.h"
#include "engine/journal/database.h"
#include "engine/journal/journal.h"

namespace tally {

// Replaces the existing record, as part of the caller's transaction.
Status write_run(SqliteDatabase& database, const RunRecord& run);
Status read_run(SqliteDatabase& database, RunRecord* run);
// The input that `analyse -u` gave instead of the run's own.
Status write_update(SqliteDatabase& database, const std::string& file,
                    const std::vector<std::pair<std::string, std::string>>& sources);
// Reads the update input. Empty file: none was given.
Status read_update(SqliteDatabase& database, std::string* file,
                   std::vector<std::pair<std::string, std::string>>* sources);
// Reads rows of two texts, ordered by position.
Status read_pairs(SqliteDatabase& database, const char* sql,
                  std::vector<std::pair<std::string, std::string>>* pairs);

}  // namespace tally
