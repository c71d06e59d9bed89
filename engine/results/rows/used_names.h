// The names that a benchmark's results can ask for, and the parameters among them. Private to
// results/.
#pragma once

#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/results/read/workpackage_view.h"
#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// With it, the records of a run with 100,000 workpackages hold only these names.
class UsedNames {
 public:
  explicit UsedNames(const Benchmark& benchmark);
  bool has(const std::string& name) const { return names_.count(name) != 0; }
  // Whether an output asks for statistics of the repeats.
  bool repeats() const { return repeats_; }
  // Whether they need this value.
  bool has_in_repeats(const std::string& name) const {
    return computes_repeats_ ? has(name) : of_repeats_.count(name) != 0;
  }

 private:
  void columns(const std::vector<Column>& list);

  std::set<std::string> names_;
  std::set<std::string> of_repeats_;
  bool repeats_ = false;
  bool computes_repeats_ = false;  // an expression in each repeat may use any value
};

// The values of a row that are not read from files: parameters and built-ins of its workpackage and
// of those it depends on.
class ParameterValues {
 public:
  // The arguments must outlive the object. `exact`: see make_value().
  ParameterValues(const UsedNames& used_names, bool exact)
      : used_names_(used_names), exact_(exact) {}

  // Adds the wanted values of a workpackage to those that have no value yet, and its units and
  // types to those of the records. `own`: of the line's own workpackage, whose values are also
  // known without the step's name. `values`: cells of the records' columns.
  void add(const WorkpackageView& workpackage, bool own, Cells& values, Records& records);

 private:
  // The columns of a name in the workpackages of a step, which mostly have the same names.
  struct Name {
    std::string name, with_step;
    int plain = -1, stepped = -1;  // columns; -1: not wanted
  };
  struct StepNames {
    std::vector<Name> names;
    Common<WorkpackageView::Types> types;  // of the last workpackage
    Common<WorkpackageView::Units> units;  // of the last workpackage
  };
  const Name& name_of(StepNames& step, size_t index, const WorkpackageView& workpackage,
                      RowColumns& columns) const;

  const UsedNames& used_names_;
  bool exact_;
  std::unordered_map<std::string, StepNames> steps_;
};

}  // namespace tally
