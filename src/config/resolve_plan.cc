// What --plan makes of the flags.
#include <algorithm>
#include <limits>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

constexpr int gpus_of_a_node = 4;

}  // namespace

Flags flags_of_plan(const Flags& f) {
  Flags plan = f;
  const bool data = f.data.mock || !f.data.paths.empty() || !f.train_paths.empty() ||
                    !f.valid_paths.empty() || !f.test_paths.empty();
  plan.data.mock = f.data.mock || !data;
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
  const int64_t model = int64_t{f.tensor_parallel} * f.pipeline_parallel;
  const int64_t nodes =
      int64_t{f.plan_nodes.value_or(0)} * f.plan_gpus_per_node.value_or(gpus_of_a_node);
  const int64_t gpus = f.plan_nodes ? nodes : f.plan_gpus ? *f.plan_gpus : model;
  const char* flag = f.plan_nodes ? "--plan-nodes" : "--plan-gpus";
  if (gpus > 10'000'000) fail(flag, "{} GPUs are more than any machine has", gpus);
  if (gpus % model != 0)
    fail(flag,
         "world size ({}) is not divisible by tensor parallel size ({}) times pipeline parallel "
         "size ({})",
         gpus, f.tensor_parallel, f.pipeline_parallel);
  return static_cast<int>(gpus);
}

void resolve_plan(const Flags& f, Config* c) {
  PlanRequest& p = c->plan;
  p.asked = f.plan;
  const std::pair<const char*, bool> only_plan[] = {
      {"--plan-device", f.plan_device.has_value()},
      {"--plan-gpus", f.plan_gpus.has_value()},
      {"--plan-nodes", f.plan_nodes.has_value()},
      {"--plan-gpus-per-node", f.plan_gpus_per_node.has_value()},
      {"--plan-zero", f.plan_zero.has_value()},
      {"--plan-network", f.plan_network.has_value()},
      {"--plan-efficiency", f.plan_efficiency.has_value()},
      {"--plan-json", f.plan_json}};
  if (!f.plan) {
    for (const auto& [flag, given] : only_plan)
      if (given) fail(flag, "has a meaning with --plan only: give --plan or leave it out");
    return;
  }
  if (f.reference) fail("--plan", "plans the explicit model: leave out --reference");
  if (f.skip_train) fail("--plan", "plans training: leave out --skip-train");
  if (f.plan_zero && *f.plan_zero == 0 && f.distributed_optimizer)
    fail("--plan-zero", "0 contradicts --use-distributed-optimizer: leave one of them out");
  p.device = f.plan_device.value_or("");
  p.gpus_per_node = f.plan_gpus_per_node.value_or(gpus_of_a_node);
  p.zero = f.plan_zero.value_or(-1);
  p.network = f.plan_network.value_or(0);
  p.efficiency = f.plan_efficiency.value_or(0);
  p.json = f.plan_json;
}

}  // namespace tally::train
