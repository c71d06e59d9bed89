// What a run measures besides its steps: phases, throughput between two iterations.
#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

void resolve_phases(const Flags& f, Config* c) {
  c->time_phases = f.time_phases;
  if (!f.time_phases) return;
  if (c->command == Command::evaluate) {
    if (!c->model.encoder())
      fail("--time-phases",
           "divides the evaluation of encoders; that of {} has one phase: leave it out",
           c->model.kind);
    return;
  }
  if (f.skip_train)
    fail("--time-phases", "times the phases of training, and --skip-train leaves it out");
  if (c->pipeline_parallel > 1)
    fail("--time-phases",
         "the passes of a pipeline's micro batches overlap: take --pipeline-model-parallel-size 1");
  // What would let one phase overlap with another.
  c->cuda_graph = false;
  c->fusions.deferred_update = false;
  c->gradient_bucket = 0;
  c->notices.emplace_back(
      "--time-phases: the run waits for the device after each phase of a step, reduces gradients "
      "after the backward pass and records no graphs: its throughput is not the headline");
}

void resolve_window(const Flags& f, Config* c) {
  if (f.throughput_start.has_value() != f.throughput_stop.has_value())
    fail(f.throughput_start ? "--throughput-start" : "--throughput-stop",
         "goes with --throughput-start and --throughput-stop: give the first and the last "
         "iteration");
  if (!f.throughput_start) return;
  if (c->command == Command::evaluate || f.skip_train)
    fail("--throughput-start", "measures training, and this run does not train: leave it out");
  c->throughput_window = {*f.throughput_start, *f.throughput_stop};
  const auto& [first, last] = c->throughput_window;
  if (last < first) fail("--throughput-stop", "{} comes before --throughput-start {}", last, first);
  if (last > c->train_iterations)
    fail("--throughput-stop", "{} comes after the last iteration {}", last, c->train_iterations);
}

void resolve_find_batch(const Flags& f, Config* c) {
  c->find_batch = f.find_batch;
  if (!f.find_batch) return;
  if (c->command == Command::evaluate)
    fail("--find-batch", "finds the micro batch of training, and this is 'evaluate'");
  if (c->world_size > 1)
    fail("--find-batch", "tries in one process, and this run has {}: start one", c->world_size);
  for (const auto& [flag, given] :
       {std::pair{"--micro-batch-size", f.micro_batch.has_value()},
        std::pair{"--global-batch-size", f.global_batch.has_value()},
        std::pair{"--rampup-batch-size", !f.rampup.empty()}, std::pair{"--plan", f.plan},
        std::pair{"--rehearse", !f.rehearse.empty()}, std::pair{"--skip-train", f.skip_train},
        std::pair{"--reference", f.reference}, std::pair{"--save", !f.save.empty()},
        std::pair{"--save-hf", !f.save_hf.empty()}, std::pair{"--load", !f.load.empty()}})
    if (given) fail(flag, "contradicts --find-batch, which trains nothing: leave one out");
}

}  // namespace

void resolve_measuring(const Flags& f, Config* c) {
  resolve_find_batch(f, c);
  resolve_phases(f, c);
  resolve_window(f, c);
}

}  // namespace tally::train
