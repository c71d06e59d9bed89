// Stores an Outcome in the columns of a table.
#pragma once

#include <cstdint>
#include <string>

#include "engine/journal/database.h"
#include "engine/workpackage/outcome.h"

namespace tally {

// A place as the journal stores it. A Mark cannot be stored, because it numbers the files of one
// parse.
struct FilePlace {
  std::string file;
  uint32_t line = 0, column = 0;
};

// The columns of an outcome except its state. All functions below use this order.
constexpr const char* outcome_columns =
    "reason,exit_code,signal,workpackage,command,command_directory,file,detail,place_file,"
    "place_line,place_column";
constexpr int outcome_column_count = 11;
// Returns "reason=?5,exit_code=?6,...", starting at parameter `first`.
std::string outcome_assignments(int first);
// Binds the columns from parameter `first` on. Values that are not set stay NULL. Outcome and place
// must live until the statement has run.
void bind_outcome(Statement& statement, int first, const Outcome& outcome, const FilePlace& place);
// Reads the columns from column `first` on.
Outcome read_outcome(const Statement& statement, int first, State state, FilePlace* place);

}  // namespace tally
