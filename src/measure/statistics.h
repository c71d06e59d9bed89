// Throughput and loss of a run from the times and losses of its steps.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace tally::train {

// One optimizer step, as it was measured.
struct Step {
  int64_t iteration = 0;  // from 1
  double seconds = 0;     // on the device's clock on a GPU
  double loss = 0;        // NaN if unlabelled
  double grad_norm = 0;
  double learning_rate = 0;
  double loss_scale = 1;
  bool skipped = false;     // fp16 overflow: weights unchanged
  bool unlabelled = false;  // no label of its batch counts
  int64_t samples = 0;      // its global batch; 0: the run's
  bool has_loss() const { return !skipped && !unlabelled; }
};

// One log line's interval.
struct Interval {
  int64_t iteration = 0;  // its last
  int64_t steps = 0;
  double seconds_per_iteration =
      0;                // host clock, from a synchronised device to a synchronised device
  int64_t samples = 0;  // sum over all its steps; 0: the run's global batch in each
};

double median(std::vector<double> values);  // NaN for none

// A rate of fewer seconds of work is not exact: it hangs on single steps and on the clocks of a
// machine that has just begun to work.
inline constexpr double kSteadySeconds = 1;

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

// The work that a rate comes from.
struct MeasuredWork {
  double seconds = 0;
  int64_t steps = 0;
};

// Rates and times of which no step or log line was measured are NaN.
struct Throughput {
  // Megatron's rule and the JUPITER benchmark's: tokens of a step / mean over all logged intervals
  // of the seconds per iteration, the first included. Where the batch grows, the rates come from
  // the seconds per sample instead of those per iteration.
  double tokens_per_second = not_measured;
  double seconds_per_iteration = not_measured;     // from the same mean
  double tokens_per_second_median = not_measured;  // tokens of a step / median seconds of a step
  double seconds_per_iteration_median = not_measured;  // from the same median
  // Mean of the steps after the warm-up, from this iteration to the last; empty without a step.
  std::optional<int64_t> steady_from;
  double tokens_per_second_steady = not_measured;
  double seconds_per_iteration_steady = not_measured;
  MeasuredWork logged, all, steady;  // the work of these three rates
};
// The first steps of a run choose algorithms by timing and record CUDA graphs. Ten of them do not
// count, of a run of fewer than twenty steps the first half.
int64_t warm_up_steps(int64_t steps);
Throughput throughput(const std::vector<Interval>& intervals, const std::vector<Step>& steps,
                      int64_t global_batch, int64_t tokens_per_sample);

}  // namespace tally::train
