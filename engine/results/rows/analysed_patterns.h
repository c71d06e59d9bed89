// The patterns of an analyser, and what is known of them before a file is read. Private to
// results/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/results/read/match_statistics.h"
#include "engine/results/read/scan.h"
#include "engine/results/rows/records.h"
#include "engine/results/rows/used_names.h"
#include "engine/workflow/workflow.h"

namespace tally {

class AnalysedPatterns {
 public:
  // The arguments must outlive the object. All pattern sets that the analyser uses must exist.
  AnalysedPatterns(const Benchmark& benchmark, const Analyser& analyser,
                   const UsedNames& used_names);

  // In the order of the file.
  const std::vector<const Pattern*>& all() const { return all_; }
  // The patterns that are computed from others (mode text, python, perl, shell).
  const std::vector<const Pattern*>& derived() const { return derived_; }
  const std::map<std::string, const Pattern*>& by_name() const { return by_name_; }
  bool has(const std::string& name) const { return by_name_.count(name) != 0; }
  // The patterns that an `analyse` of the analyser searches for.
  const std::vector<const Pattern*>& of(const Analyse* analyse) const {
    return of_step_.at(analyse);
  }
  // Whether a workpackage of which these files were there has the pattern: its matches or default,
  // or what is computed. A pattern that the analyser uses is there without any file. One that a
  // file uses needs such a file, as in JUBE.
  bool applies(const Pattern& pattern, const FoundFiles& files) const;
  // The values that records keep of a pattern's matches.
  const std::vector<StoredStatistic>& statistics(const std::string& pattern) const {
    return statistics_.at(pattern);
  }
  // The names that a computed pattern is computed from: patterns that are read from files, and
  // parameters.
  const std::set<std::string>& bases(const Pattern& derived) const {
    return bases_.at(derived.name.value);
  }
  // Adds the pattern's name, and those of patterns that are computed from it.
  void add_with_computed(const std::string& pattern, std::set<std::string>* names) const;
  // Adds the types and units of all patterns.
  void describe(Records& records) const;

 private:
  void choose_statistics(const Pattern& pattern);
  bool is_base(const std::string& pattern, const Pattern& derived) const;

  const Benchmark& benchmark_;
  const UsedNames& used_names_;
  std::vector<const Pattern*> all_, derived_;
  std::map<std::string, const Pattern*> by_name_;
  std::map<const Analyse*, std::vector<const Pattern*>> of_step_;
  std::set<std::string> everywhere_;  // names of patterns that the analyser itself uses
  std::map<const AnalyseFile*, std::set<std::string>> of_file_;     // names that one file uses
  std::map<std::string, std::vector<StoredStatistic>> statistics_;  // by pattern
  std::map<std::string, std::set<std::string>> bases_;              // by computed pattern
};

// Gives a pattern without a value its default, if it has one.
void add_default(const Pattern& pattern, Cells& values);

}  // namespace tally
