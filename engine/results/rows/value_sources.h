// Which workpackages gave the values of a row, and what is to be said of the row for that: that
// work was reused, that the machine was disturbed. Private to results/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/results/rows/analysed_patterns.h"
#include "engine/results/rows/groups.h"
#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A file that is read through a link to the work of other steps.
struct LinkedFile {
  std::set<std::string> steps;     // that the path names
  std::set<std::string> patterns;  // that it is searched for
  std::set<std::string> alone;     // of these, those that no file of the step itself may give
};

// The linked files of an analyser. JUBE's rows say nothing of where a value comes from, so that it
// has none in JUBE's files.
class LinkedFiles {
 public:
  LinkedFiles(const Benchmark& benchmark, const Analyser& analyser);
  bool empty() const { return files_.empty(); }
  // The files that `analyse`, one of the analyser's, reads.
  const std::vector<LinkedFile>& of(const Analyse* analyse) const;

 private:
  std::map<const Analyse*, std::vector<LinkedFile>> files_;
};

// Whether another member of the group did the member's work: both show one measurement.
bool shares_work(const Group& group, const WorkpackageView& member);
// Whether the group shows work of others.
bool is_reused(const Group& group);
class ValueSources {
 public:
  // The arguments must outlive the object. The groups' files must have been read.
  ValueSources(const Benchmark& benchmark, const Analyser& analyser,
               const AnalysedPatterns& patterns, const Groups& groups);

  // Whether the step prints the pattern in some workpackage. Where such a value is missing, that of
  // the step before is another number and does not stand in for it. Never in JUBE's files.
  bool prints(const std::string& step, const std::string& pattern) const {
    return printed_.count({step, pattern}) != 0;
  }

  struct Sources {
    // The workpackages that a repeat has values from, by the name of each value that is not its own.
    std::map<std::string, std::set<int>> from;
    // Patterns whose values are, at least in part, of workpackages that do not count.
    std::set<std::string> unmeasured;
  };
  // `above`: of those that the repeat depends on, nearest first. Adds their repeats to those of the
  // row.
  Sources sources_of(const WorkpackageView& member, const Found& own,
                     const std::vector<Groups::Above>& above, Record& row) const;

  // A value of an earlier step brings along what is to be said of the workpackages that printed it:
  // Record::earlier.
  void take_marks_of_ancestors(const Group& group, Record& record) const;

 private:
  // Patterns that have a value, and whether it is reused.
  using Origins = std::map<std::string, bool>;

  void add_linked_sources(const WorkpackageView& member, std::set<std::string>& known,
                          Sources& sources, Record& row) const;
  bool is_own(const Pattern& pattern, const std::set<std::string>& known,
              const std::map<std::string, std::set<int>>& from, std::set<int>* sources) const;
  void take_marks_of_linked(const Group& group, Origins& origins, Record& record) const;
  void add_marks(const std::vector<const WorkpackageView*>& members, bool reused,
                 std::set<std::string> names, Record& record) const;
  template <typename IsKnown>
  std::set<std::string> sought_in(const std::string& above, const std::string& step,
                                  const IsKnown& is_known) const;
  void note_reused(const Origins& origins, bool own, Record& record) const;

  const Benchmark& benchmark_;
  const AnalysedPatterns& patterns_;
  const Groups& groups_;
  LinkedFiles linked_;
  std::set<std::pair<std::string, std::string>> printed_;  // step, pattern
};

}  // namespace tally
