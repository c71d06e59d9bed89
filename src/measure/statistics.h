// Throughput and loss of a run from the times and losses of its steps.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tally::train {

// One optimizer step, as it was measured.
struct Step {
  int64_t iteration = 0;  // from 1
  double seconds = 0;     // on the device's clock on a GPU
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  double loss_scale = 1;
  bool skipped = false;  // fp16 overflow: weights unchanged
  int64_t samples = 0;   // its global batch; 0: the run's
};

// One log line's interval.
struct Interval {
  int64_t iteration = 0;  // its last
  int64_t steps = 0;
  double seconds_per_iteration =
      0;                // host clock, from a synchronised device to a synchronised device
  int64_t samples = 0;  // of all its steps; 0: the run's global batch in each
};

double median(std::vector<double> values);  // 0 for none

// A rate of fewer seconds of work is not exact: it hangs on single steps and on the clocks of a
// machine that has just begun to work.
inline constexpr double kSteadySeconds = 1;

// The work that a rate comes from.
struct MeasuredWork {
  double seconds = 0;
  int64_t steps = 0;
};

struct Throughput {
  // Megatron's rule and the JUPITER benchmark's: tokens of a step / mean over all logged intervals
  // of the seconds per iteration, the first included. Where the batch grows, the rates come from
  // the seconds per sample instead of those per iteration.
  double tokens_per_second = 0;
  double seconds_per_iteration = 0;         // that mean
  double tokens_per_second_median = 0;      // tokens of a step / median seconds of a step
  double seconds_per_iteration_median = 0;  // that median
  // Mean of the steps after the warm-up, from this iteration to the last; 0 without a step.
  int64_t steady_from = 0;
  double tokens_per_second_steady = 0;
  double seconds_per_iteration_steady = 0;
  MeasuredWork logged, all, steady;  // the work of these three rates
};
// The first steps of a run choose algorithms by timing and record CUDA graphs. Ten of them do not
// count, of a run of fewer than twenty steps the first half.
int64_t warm_up_steps(int64_t steps);
Throughput throughput(const std::vector<Interval>& intervals, const std::vector<Step>& steps,
                      int64_t global_batch, int64_t tokens_per_sample);

}  // namespace tally::train
