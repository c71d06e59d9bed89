// Flags of what a run measures besides the time of its steps.
#include "src/config/flag_group.h"

namespace tally::train {

void declare_measure_flags(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Measuring (docs/record.md)");
  g.toggle("--time-phases", &f->time_phases,
           "Time the phases of a step (data, forward, backward, gradient reduction, optimizer "
           "update), or of an encoder's evaluation, one by one. Waits between phases: for a run of "
           "its own, whose throughput is not the headline");
  g.toggle(
      "--find-batch", &f->find_batch,
      "Find the largest --micro-batch-size that fits, by the memory model and on a GPU then by "
      "trying, print what was tried, and end; trains nothing");
  g.toggle("--no-energy", &f->no_energy,
           "Do not read the energy counter and the power of the GPUs while training");
  g.number("--throughput-start", &f->throughput_start, 1,
           "First iteration of a throughput between two iterations");
  g.number("--throughput-stop", &f->throughput_stop, 1, "Last iteration of it");
  g.number(
      "--profile-start", &f->profile_start, 1,
      "First iteration of a profile of rank 0's GPU: time of each kernel, busy fraction, every "
      "invocation. A run whose throughput is not the headline");
  g.number("--profile-stop", &f->profile_stop, 1, "Last iteration of it");
  g.toggle(
      "--profile-counters", &f->profile_counters,
      "Read hardware counters in these iterations instead of times: for each kernel the use of "
      "tensor cores, of the fp16, fma and special-function pipes, and of device memory, in "
      "percent of peak. For a run of one process; CUDA graphs are off in it");
  g.text("--profile-dir", &f->profile_dir, "DIR",
         "Where its files go: kernels.csv and trace.json, Chrome's format; with --profile-counters "
         "counters.csv and kernel_use.csv (default: profile)");
}

}  // namespace tally::train
