// The values of a result line that are not read from files: parameters and built-ins of its
// workpackage and of those it depends on. Private to results/.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "engine/results/read/workpackage_view.h"
#include "engine/results/rows/records.h"
#include "engine/results/rows/wanted.h"

namespace tally {

class ParameterValues {
 public:
  // The arguments must outlive the object. `exact`: see make_value().
  ParameterValues(const Wanted& wanted, bool exact) : wanted_(wanted), exact_(exact) {}

  // Adds the wanted values of a workpackage to those that have no value yet, and its units and
  // types to those of the records. `own`: of the line's own workpackage, whose values are also
  // known without the step's name. `values`: cells of the records' columns.
  void add(const WorkpackageView& workpackage, bool own, Cells& values, Records& records);

 private:
  // What a name is in the workpackages of a step, which mostly have the same names.
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

  const Wanted& wanted_;
  bool exact_;
  std::unordered_map<std::string, StepNames> steps_;
};

}  // namespace tally
