// The matches of an analyser's patterns in the files of a workpackage, or of several that share a
// row. Private to results/.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "engine/base/flat_map.h"
#include "engine/results/read/match_statistics.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The matches so far, by pattern name.
using Found = FlatMap<std::string, Statistics>;

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
  std::map<RowKey, size_t> places_;
};

// The content of the files of a row, or of one of its workpackages.
struct InFiles {
  Found found;       // all matches
  FoundFiles files;  // that were there
  MatchedRows rows;  // with `rows` of the analyser
};

// Takes the matches of a workpackage.
struct FoundIn {
  InFiles* row = nullptr;  // of its row
  InFiles* own = nullptr;  // its own, if statistics of repeats are wanted; else null
  void add_file(const AnalyseFile* file) const;
};

}  // namespace tally
