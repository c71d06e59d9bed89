// Records what files outside the run's folder were before and after a workpackage, if results read
// them. Only so can its values be told from those of earlier runs and of other workpackages.
#pragma once

#include <string>
#include <vector>

#include "engine/execute/run_context.h"

namespace tally {

class OutsideFileRecorder {
 public:
  explicit OutsideFileRecorder(RunContext& context) : context_(context) {}

  // Call it before the first operation of an attempt, and when the workpackage has ended.
  Status began(int id) const;
  Status ended(int id) const;

 private:
  std::vector<std::string> paths(int id) const;

  RunContext& context_;
};

}  // namespace tally
