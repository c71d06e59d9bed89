// The names that a benchmark's results can ask for. Private to results/.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// With it, the records of a run with 100,000 workpackages hold only these names.
class Wanted {
 public:
  explicit Wanted(const Benchmark& benchmark);
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

}  // namespace tally
