// An Outcome as columns of a table.
#pragma once

#include <cstdint>
#include <string>

#include "engine/journal/database.h"
#include "engine/workpackage/outcome.h"

namespace tally {

// A place as the journal keeps it: marks number the files of one reading.
struct FilePlace {
  std::string file;
  uint32_t line = 0, column = 0;
};

// Columns of an outcome but its state, in the order of all that follows.
constexpr const char* outcome_columns =
    "reason,exit_code,signal,workpackage,command,command_directory,file,detail,place_file,"
    "place_line,place_column";
constexpr int outcome_column_count = 11;
// "reason=?5,exit_code=?6,..." from parameter `first`.
std::string outcome_assignments(int first);
// Binds them from parameter `first` on; what is not set stays NULL. Both must live until the
// statement has run.
void bind_outcome(Statement& statement, int first, const Outcome& outcome, const FilePlace& place);
// Reads them from column `first` on.
Outcome read_outcome(const Statement& statement, int first, State state, FilePlace* place);

}  // namespace tally
