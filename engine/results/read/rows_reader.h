// Divides the matches in a workpackage's files among the rows that its analyser makes of them
// (`rows`). Private to results/.
//
// Each match of the first pattern in `rows` begins a row, also one whose group is empty. A row's
// part of the file goes from the beginning of that match's line to the beginning of the line of the
// next one, or to the file's end. A pattern that matches above the first row of a file, and in none
// of its rows, gives these matches to all rows of that file. Matches in a file without rows, and
// those of patterns of another pattern set, are the workpackage's.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "engine/results/read/found.h"

namespace tally {

class RowsReader {
 public:
  // The arguments must outlive the object.
  RowsReader(const Benchmark& benchmark, const Analyser& analyser);

  // The pattern of which each match begins a row, among these. Null: none does.
  const Pattern* first_of(const std::vector<const Pattern*>& patterns) const;
  // Whether each match of the pattern begins a row.
  bool begins_with(const Pattern& pattern) const {
    return !analyser_.rows.empty() && pattern.name.value == analyser_.rows.front().value;
  }
  // Forgets the rows of the workpackage before.
  void begin_workpackage() {
    rows_.clear();
    files_.clear();
  }
  void begin_file();
  // Returns the patterns that match above the first row, and in rows: what stands above is of no
  // row, or each value stands before its row.
  std::vector<std::string> end_file();
  // A match of first_of() in the file's text. They come in order.
  void begin_row(std::string_view text, const char* match);
  // Adds a value of the pattern that stands at `at` in the file's text, if it belongs to a row.
  void add(const Pattern& pattern, const char* at, const Value& value);
  // Adds the matches of a whole row, the next one, as the journal kept it.
  void add_row(Found found);
  // Gives the rows their keys, and adds them to what was found. Returns the values of rows that are
  // equal in two files: a repeat that lacks one of them would have the others change places.
  // Empty: there are none.
  std::string end_workpackage(const FoundIn& found);

 private:
  const Analyser& analyser_;
  const std::set<const Pattern*> patterns_;
  std::vector<Found> rows_;          // of the workpackage
  Found above_;                      // above the first row of the file
  std::vector<int> files_;           // of each of these rows
  int file_ = 0;                     // the one that is read
  size_t before_ = 0;                // rows of the files before
  std::vector<const char*> begins_;  // of the file's rows
};

}  // namespace tally
