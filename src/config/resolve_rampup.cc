// --rampup-batch-size, by the rules of Megatron-LM's num_microbatches_calculator.py and of
// update_train_iters() in its training.py.
#include <algorithm>
#include <limits>

#include "src/config/resolve_parts.h"
#include "src/config/settings.h"

namespace tally::train {
namespace {

constexpr const char* rampup_flag = "--rampup-batch-size";

}  // namespace

BatchRampup parse_rampup(const std::vector<std::string>& words) {
  if (words.size() != 3)
    fail(rampup_flag,
         "expected the following format: --rampup-batch-size <start batch size> <batch size "
         "increment> <ramp-up samples>, and {} values were given",
         words.size());
  const auto number = [&](size_t i) {
    return parse_number<int64_t>(rampup_flag, words[i], 1, std::numeric_limits<int64_t>::max());
  };
  return {number(0), number(1), number(2)};
}

namespace {

void check_rampup(const Config& c) {
  const BatchRampup& r = c.rampup;
  const int64_t range = c.global_batch - r.start;
  if (range < 0)
    fail(rampup_flag,
         "expected global batch size to be greater than or equal to start batch size, got {} and "
         "{}",
         c.global_batch, r.start);
  if (range == 0)
    fail(rampup_flag, "starts with --global-batch-size {} itself: leave it out", c.global_batch);
  if (range % r.increment != 0)
    fail(rampup_flag,
         "expected global batch size interval ({}) to be divisible by global batch size increment "
         "({})",
         range, r.increment);
}

// The steps until the batch has its full size or the samples end, and the samples that they take.
struct Ramp {
  int64_t steps = 0, samples = 0;
};

Ramp walk(const Config& c) {
  const BatchRampup& r = c.rampup;
  const int64_t together = c.micro_batch * c.data_parallel;
  const int64_t last = std::min(r.samples, c.train_samples);
  const int64_t increments = (c.global_batch - r.start) / r.increment;
  Ramp ramp;
  while (ramp.samples <= last) {
    const int64_t batch = c.global_batch_at(ramp.samples);
    if (batch % together != 0)
      fail(rampup_flag,
           "current global batch size ({}) is not divisible by micro-batch-size ({}) times data "
           "parallel size ({})",
           batch, c.micro_batch, c.data_parallel);
    if (c.virtual_pipeline_layers > 0 && batch / together % c.pipeline_parallel != 0)
      fail(rampup_flag,
           "number of microbatches ({}) is not divisible by pipeline-model-parallel-size ({}) when "
           "using interleaved schedule, at a global batch size of {}",
           batch / together, c.pipeline_parallel, batch);
    // Samples after which the batch grows, up to a rounding error. Steps that end well before that
    // point need not be counted one by one.
    const int64_t level = (batch - r.start) / r.increment + 1;
    const auto growth =
        static_cast<int64_t>(static_cast<double>(r.samples) / static_cast<double>(increments) *
                             static_cast<double>(level));
    const int64_t sure = std::max<int64_t>(1, (std::min(growth, last) - ramp.samples) / batch - 2);
    ramp.steps += sure;
    ramp.samples += sure * batch;
  }
  return ramp;
}

}  // namespace

void resolve_rampup(const Flags& f, Config* c) {
  if (c->rampup.start == 0) return;
  if (!f.train_samples && !c->skip_train)
    fail(rampup_flag,
         "expected no batch-size rampup for {}-based training: give the length as --train-samples",
         f.epochs ? "epoch" : "iteration");
  check_rampup(*c);
  if (!f.train_samples) return;
  const Ramp ramp = walk(*c);
  c->train_iterations =
      ramp.steps + std::max<int64_t>(0, c->train_samples - ramp.samples) / c->global_batch;
}

}  // namespace tally::train
