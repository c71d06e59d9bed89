// Notes below a table in few words.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/results/table/result_table.h"

namespace tally {

// Returns "1, 2, 5 to 9 and 3 more". The numbers rise.
std::string numbers_in_words(const std::vector<int>& numbers);

// The notes' texts. Those about rows and workpackages that are equal but for their numbers become
// one: "rows 1, 3 to 5 FAILED: workpackages 0 and 2 to 4 (s) failed: exit code 3".
std::vector<std::string> grouped_notes(std::span<const Note> notes);

}  // namespace tally
