// Settings of what a run measures besides the time of its steps, and of the plan.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/config/flags.h"
#include "src/config/settings.h"
#include "src/device/gpu_table.h"

namespace tally::train {

void add_measure_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Config& c = flags->config;
  t.group("Measuring (docs/record.md)");
  t.turns_on(
       "--time-phases", &c.time_phases,
       "Time the phases of a step (data, forward, backward, gradient reduction, optimizer "
       "update), or of an encoder's evaluation, one by one. Waits between phases: for a run of "
       "its own, whose throughput is not the headline")
      .record("time_phases");
  t.turns_on(
       "--explain", &c.explain,
       "Where the time of a step goes, from the GPU's datasheet to the measured step: clocks, "
       "GEMMs, "
       "attention, other kernels, bubble, messages, slowest rank, gaps. Does the last 15 steps "
       "again after the measured ones, under CUPTI, which changes no result (docs/evidence.md)")
      .record("explain");
  t.number("--witness-steps", &c.witness_steps, 1,
           "Record the losses of so many first steps by the reference model in float64 on the CPU, "
           "from the same weights and samples, beside the run's own (docs/evidence.md). For small "
           "models; before the training");
  t.turns_on(
      "--find-batch", &c.find_batch,
      "Find the largest --micro-batch-size that fits, by the memory model and on a GPU then by "
      "trying, print what was tried, and end; trains nothing");
  t.turns_off("--no-energy", &c.energy,
              "Do not read the energy counter and the power of the GPUs while training");
  t.number("--throughput-start", &c.throughput_window.first, 1,
           "First iteration of a throughput between two iterations");
  t.number("--throughput-stop", &c.throughput_window.second, 1, "Last iteration of it");
  t.number(
      "--profile-start", &c.profile_window.first, 1,
      "First iteration of a profile of rank 0's GPU: time of each kernel, busy fraction, every "
      "invocation. A run whose throughput is not the headline");
  t.number("--profile-stop", &c.profile_window.second, 1, "Last iteration of it");
  t.turns_on(
      "--profile-counters", &c.profile_counters,
      "Read hardware counters in these iterations instead of times: for each kernel the use of "
      "tensor cores, of the fp16, fma and special-function pipes, and of device memory, in "
      "percent of peak. For a run of one process; CUDA graphs are off in it");
  t.text(
      "--profile-dir", &c.profile_dir, "DIR",
      "Folder of its files: kernels.csv and trace.json, Chrome's format; with --profile-counters "
      "counters.csv and kernel_use.csv (default: profile)");
}

void add_plan_settings(SettingTable* table, Flags* flags) {
  SettingTable& t = *table;
  Flags& f = *flags;
  PlanRequest& p = f.config.plan;
  t.group("Plan (docs/planner.md)");
  t.turns_on("--plan", &p.asked,
             "Print what a run of these flags would need and stop: memory of each GPU, pipeline "
             "bubble, communication, time of a step; needs no GPU, no data and no --train-iters. "
             "Exit code 3: it does not fit --plan-device");
  t.text("--plan-device", &p.device, "NAME",
         fmt::format("The GPU to plan for: {} or another size of memory, as 64GB",
                     fmt::join(plan_gpu_names(), ", ")))
      .offers(plan_gpu_names());
  t.number("--plan-gpus", &f.plan_gpus, 1,
           "GPUs of the planned run (default: --nproc-per-node, at least tensor x pipeline "
           "parallel size)");
  t.number("--plan-nodes", &f.plan_nodes, 1,
           "Nodes of the planned run, instead of --plan-gpus: --plan-gpus-per-node GPUs each");
  t.number("--plan-gpus-per-node", &f.plan_gpus_per_node, 1, "GPUs of a node (default: 4)", 1024);
  t.number("--plan-zero", &p.zero, 0,
           "State that data parallel GPUs share: 0 nothing, 1 the optimizer's state, 2 also the "
           "gradients "
           "(default: 1 with --use-distributed-optimizer, else 0)",
           2);
  t.number("--plan-network", &p.network, 0.001,
           "GB/s that each GPU sends to other nodes (default: that of --plan-device's usual node)");
  t.number("--plan-efficiency", &p.efficiency, 0.01,
           "Share of the peak rate that GEMMs reach (default: measured, by --plan-device)", 1.0);
  t.turns_on("--plan-json", &p.json, "Print the plan as JSON");
}

}  // namespace tally::train
