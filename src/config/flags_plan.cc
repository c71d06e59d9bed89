// Flags of the plan.
#include "src/config/flag_group.h"

namespace tally::train {

void declare_plan_flags(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Plan (docs/planner.md)");
  g.toggle("--plan", &f->plan,
           "Print what a run of these flags would need and stop: memory of each GPU, pipeline "
           "bubble, communication, time of a step; needs no GPU, no data and no --train-iters. "
           "Exit code 3: it does not fit --plan-device");
  g.text("--plan-device", &f->plan_device, "NAME",
         "The GPU to plan for: H200, H100, GH200, B200, A100-80GB, A100-40GB or another size of "
         "memory, as 64GB");
  g.number("--plan-gpus", &f->plan_gpus, 1,
           "GPUs of the planned run (default: tensor x pipeline parallel size)");
  g.number("--plan-nodes", &f->plan_nodes, 1,
           "Nodes of the planned run, instead of --plan-gpus: --plan-gpus-per-node GPUs each");
  g.number("--plan-gpus-per-node", &f->plan_gpus_per_node, 1, "GPUs of a node (default: 4)", 1024);
  g.number(
      "--plan-zero", &f->plan_zero, 0,
      "What data parallel GPUs share: 0 nothing, 1 the optimizer's state, 2 also the gradients "
      "(default: 1 with --use-distributed-optimizer, else 0)",
      2);
  g.number("--plan-network", &f->plan_network, 0.001,
           "GB/s that each GPU sends to other nodes (default: that of --plan-device's usual node)");
  g.number("--plan-efficiency", &f->plan_efficiency, 0.01,
           "Share of the peak rate that GEMMs reach (default: measured, by --plan-device)", 1.0);
  g.toggle("--plan-json", &f->plan_json, "Print the plan as JSON");
}

}  // namespace tally::train
