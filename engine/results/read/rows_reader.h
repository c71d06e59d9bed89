// The matches of an analyser's patterns in the files of a workpackage, or of several that share a
// row. Private to results/.
#pragma once

#include <compare>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/compact.h"
#include "engine/results/read/match_statistics.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The matches so far, by pattern name.
using Found = FlatMap<std::string, Statistics>;

// A time that matches state (`measured_over`).
struct StatedTime {
  SearchedIn time;
  // A rate with a match in the file that states it. Null: it counts for any rate, in any file.
  const Pattern* beside = nullptr;
  auto operator<=>(const StatedTime&) const = default;
};
// The fewest seconds that matches state for how long something was measured.
using StatedSeconds = FlatMap<StatedTime, double>;
// Adds what the value of a time's pattern states, if it is a number and its unit one of time.
void add_seconds(const SearchedIn& time, const Value& value, StatedSeconds& seconds);
// The same of several values.
void add_seconds(const SearchedIn& time, const Statistics& values, StatedSeconds& seconds);
void add_seconds(const StatedTime& time, double stated, StatedSeconds& seconds);
// The definition_of() under which a sample has such a time. `definition`: that of the time's pattern.
std::string definition_of_seconds(const std::string& definition, const StatedTime& time);

// The entries of an `analyse` with patterns of their own of which a file was there, each once.
using FoundFiles = std::vector<const AnalyseFile*>;

// The key tells the rows of one workpackage apart.
struct RowKey {
  std::map<std::string, std::string> values;  // of the analyser's `rows`, by name
  int occurrence = 0;                         // among the rows of the same values, from 0

  bool empty() const { return values.empty(); }  // the row is not one of `rows`
  auto operator<=>(const RowKey&) const = default;
};

// A row that comes from one match of the first of an analyser's `rows`.
struct MatchedRow {
  RowKey key;
  Found found;  // in its part of the file
  StatedSeconds seconds;
};

// The rows of a workpackage, or of several, in the order of the matches.
class MatchedRows {
 public:
  bool empty() const { return rows_.empty(); }
  size_t size() const { return rows_.size(); }
  std::vector<MatchedRow>::const_iterator begin() const { return rows_.begin(); }
  std::vector<MatchedRow>::const_iterator end() const { return rows_.end(); }
  // Null: there is none.
  const MatchedRow* find(const RowKey& key) const;
  // Adds the matches of a row, to one of the same key if there is one.
  void add(const MatchedRow& row);

 private:
  std::vector<MatchedRow> rows_;
  std::map<RowKey, size_t> indexes_;
};

// The content of the files of a row, or of one of its workpackages.
struct InFiles {
  Found found;       // all matches
  FoundFiles files;  // that were there
  MatchedRows rows;  // with `rows` of the analyser
  StatedSeconds seconds;
};

// Takes the matches of a workpackage.
struct MatchSinks {
  InFiles* row = nullptr;  // of its row
  InFiles* own = nullptr;  // its own, if statistics of repeats are wanted; else null
  void add_file(const AnalyseFile* file) const;
  void add_seconds_of(const StatedTime& time, double stated) const;
};

// Divides the matches in a workpackage's files among the rows that its analyser makes of them
// (`rows`).
//
// Each match of the first pattern in `rows` begins a row, also one whose group is empty. A row's
// part of the file goes from the beginning of that match's line to the beginning of the line of the
// next one, or to the file's end. A pattern that matches above the first row of a file, and in none
// of its rows, gives these matches to all rows of that file. Matches in a file without rows, and
// those of patterns of another pattern set, are the workpackage's.
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
  // `time`: what it is as a time of others; null: it is none.
  void add(const Pattern& pattern, const char* at, const Value& value, const SearchedIn* time);
  // Adds the matches of a whole row, the next one, as the journal kept it.
  void add_row(Found found, StatedSeconds seconds);
  // Gives the rows their keys, and adds them to what was found. Returns the values of rows that are
  // equal in two files: a repeat that lacks one of them would have the others change positions.
  // Empty: there are none.
  std::string end_workpackage(const MatchSinks& found);

 private:
  struct Part {
    Found found;
    StatedSeconds seconds;
    void add(const Part& more);
  };

  const Analyser& analyser_;
  const std::set<const Pattern*> patterns_;
  std::vector<Part> rows_;           // of the workpackage
  Part above_;                       // above the first row of the file
  std::vector<int> files_;           // of each of these rows
  int file_ = 0;                     // the one that is read
  size_t before_ = 0;                // rows of the files before
  std::vector<const char*> begins_;  // of the file's rows
};

}  // namespace tally
