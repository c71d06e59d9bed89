// The Config of a plan (--plan).
#include <algorithm>
#include <limits>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

constexpr int gpus_of_a_node = 4;

}  // namespace

Flags flags_of_plan(const Flags& f) {
  Flags plan = f;
  const bool data = f.config.data.mock || !f.config.data.paths.empty() || !f.train_paths.empty() ||
                    !f.valid_paths.empty() || !f.test_paths.empty();
  plan.config.data.mock = f.config.data.mock || !data;
  // --epochs would read the dataset.
  if (!f.train_samples && !f.train_iterations) {
    plan.epochs.reset();
    plan.train_iterations = 1'000'000;
  }
  return plan;
}

int planned_world_size(const Flags& f) {
  if (f.plan_nodes && f.plan_gpus)
    fail("--plan-nodes", "contradicts --plan-gpus {}: give one of them", *f.plan_gpus);
  const int64_t model = int64_t{f.config.tensor_parallel} * f.config.pipeline_parallel;
  const int64_t nodes =
      int64_t{f.plan_nodes.value_or(0)} * f.plan_gpus_per_node.value_or(gpus_of_a_node);
  // A model may need several nodes of so many processes.
  const int64_t usual = std::max(model, int64_t{f.processes.value_or(0)});
  const int64_t gpus = f.plan_nodes ? nodes : f.plan_gpus ? *f.plan_gpus : usual;
  const char* flag = f.plan_nodes                    ? "--plan-nodes"
                     : f.plan_gpus || usual == model ? "--plan-gpus"
                                                     : "--nproc-per-node";
  if (gpus > 10'000'000) fail(flag, "{} GPUs are more than any machine has", gpus);
  if (gpus % model != 0)
    fail(flag,
         "world size ({}) is not divisible by tensor parallel size ({}) times pipeline parallel "
         "size ({})",
         gpus, f.config.tensor_parallel, f.config.pipeline_parallel);
  return static_cast<int>(gpus);
}

void resolve_plan(const Flags& f, Config* c) {
  PlanRequest& p = c->plan;
  if (!p.asked) {
    if (const char* flag =
            f.first_given({"--plan-device", "--plan-gpus", "--plan-nodes", "--plan-gpus-per-node",
                           "--plan-zero", "--plan-network", "--plan-efficiency", "--plan-json"}))
      fail(flag, "has a meaning with --plan only: give --plan or leave it out");
    return;
  }
  if (c->reference) fail("--plan", "plans the explicit model: leave out --reference");
  if (c->skip_train) fail("--plan", "plans training: leave out --skip-train");
  if (p.zero == 0 && f.config.distributed_optimizer)
    fail("--plan-zero", "0 contradicts --use-distributed-optimizer: leave one of them out");
  p.gpus_per_node = f.plan_gpus_per_node.value_or(gpus_of_a_node);
}

}  // namespace tally::train
