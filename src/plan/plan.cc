#include "src/plan/plan.h"

#include <fmt/format.h>

#include "src/config/args.h"

namespace tally::train {
namespace {

struct Change {
  const char* flag;
  bool possible;
  Config config;
};

std::vector<Change> changes_of(const Config& c) {
  const PlanLayout l = layout_of(c);
  std::vector<Change> all;
  const auto add = [&](const char* flag, bool possible, const auto& change) {
    Config other = c;
    change(other);
    all.push_back({flag, possible, other});
  };
  add("--use-distributed-optimizer", l.data > 1 && l.zero == 0, [](Config& o) { o.plan.zero = 1; });
  add("--plan-zero 2", l.data > 1 && l.zero == 1, [](Config& o) { o.plan.zero = 2; });
  add("--sequence-parallel", l.tensor > 1 && !l.sequence && c.sequence % l.tensor == 0,
      [](Config& o) { o.sequence_parallel = true; });
  add("--recompute-granularity selective", c.recompute == Recompute::none,
      [](Config& o) { o.recompute = Recompute::selective; });
  add("--recompute-granularity full", c.recompute != Recompute::full,
      [](Config& o) { o.recompute = Recompute::full; });
  add("--micro-batch-size 1", c.micro_batch > 1, [](Config& o) { o.micro_batch = 1; });
  add("--bf16", size_of(c.compute_type()) > 2, [](Config& o) { o.precision = Precision::bf16; });
  return all;
}

std::vector<std::string> changes_that_fit(const Config& c, const GpuKind& kind,
                                          const CountedDevice& target) {
  std::vector<std::string> flags;
  for (const Change& change : changes_of(c))
    if (change.possible && worst_stage(all_stages(change.config, target)).total() <= kind.memory)
      flags.emplace_back(change.flag);
  return flags;
}

// A memory alone (--plan-device 80GB) has no capability.
void check_fp8(const Config& c, const GpuKind& kind) {
  if (kind.capability == 0) return;
  const std::string refusal = fp8_refusal(c, kind.name, kind.capability);
  if (!refusal.empty()) throw UsageError(refusal);
}

}  // namespace

Plan make_plan(const Config& c) {
  Plan plan;
  plan.config = c;
  plan.layout = layout_of(c);
  if (!c.plan.device.empty()) plan.kind = gpu_kind(c.plan.device);
  if (plan.kind) check_fp8(c, *plan.kind);
  CountedDevice target = plan.kind ? target_of(*plan.kind) : CountedDevice{true};
  target.gpu = c.device != "cpu";
  for (const StageCount& count : count_stages(c, target)) {
    plan.stages.push_back(count.memory);
    plan.volumes.push_back(count.sent);
  }
  if (!plan.kind) return plan;
  if (!plan.fits()) plan.changes = changes_that_fit(c, *plan.kind, target);
  plan.smallest = smallest_run(c, *plan.kind, c.plan.gpus_per_node);
  const Machine machine = machine_of(c, *plan.kind);
  if (machine.peak > 0 && machine.efficiency > 0) {
    plan.time = step_time(c, machine);
    plan.efficiency = machine.efficiency;
  }
  return plan;
}

}  // namespace tally::train
