#include "src/plan/plan.h"

namespace tally::train {

Plan make_plan(const Config& c) {
  Plan plan;
  plan.config = c;
  plan.layout = layout_of(c);
  if (!c.plan.device.empty()) plan.kind = gpu_kind(c.plan.device);
  MemoryTarget target = plan.kind ? target_of(*plan.kind) : MemoryTarget{true};
  target.gpu = c.device != "cpu";
  plan.stages = all_stages(c, target);
  for (int i = 0; i < plan.layout.pipeline; ++i) plan.volumes.push_back(step_volumes(c, i));
  if (!plan.kind) return plan;
  plan.smallest = smallest_run(c, *plan.kind, c.plan.gpus_per_node);
  const Machine machine = machine_of(c, *plan.kind);
  if (machine.peak > 0 && machine.efficiency > 0) {
    plan.time = step_time(c, machine);
    plan.efficiency = machine.efficiency;
  }
  return plan;
}

}  // namespace tally::train
