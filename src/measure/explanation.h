// The time of a step (--explain) as each rank's trace gave it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/measure/step_bars.h"

namespace tally::train {

// A GEMM of the step, timed by itself: the same call again and again on the same operands.
struct GemmAlone {
  std::string call;    // the operation and its operands' shapes
  int64_t calls = 0;   // in a step
  double seconds = 0;  // the GEMM's kernels take so long in one call
};

struct RankExplanation {
  int64_t steps = 0;  // traced
  BarTimes times{};   // the bars of all these steps
  int64_t lost = 0;   // records that CUPTI could not keep
  std::vector<GemmAlone> gemms;

  double seconds(StepBar bar) const;  // in one step
  double step_seconds() const;
  double gemm_seconds_alone() const;  // in one step
};

using Explanation = std::vector<RankExplanation>;  // in the order of ranks; empty: none

}  // namespace tally::train
