// The names that a benchmark's results can ask for. Private to results/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// With it, the records of a run with 100,000 workpackages hold only these names. If the names
// cannot be known, it wants everything (relative_to compares all parameters).
class Wanted {
 public:
  // `all`: wants everything, whatever the results ask for.
  Wanted(const Benchmark& benchmark, bool all);
  bool has(const std::string& name) const { return all_ || names_.count(name) != 0; }
  // Whether an output asks for statistics of the repeats.
  bool repeats() const { return repeats_; }

 private:
  void columns(const std::vector<Column>& list);

  std::set<std::string> names_;
  bool all_ = false;
  bool repeats_ = false;
};

}  // namespace tally
