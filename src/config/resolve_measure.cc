// What a run measures besides its steps: phases, throughput between two iterations.
#include <optional>
#include <utility>

#include "src/config/resolve_parts.h"
#include "src/device/graph.h"

namespace tally::train {
namespace {

void resolve_phases(const Flags& f, Config* c) {
  c->energy = !f.no_energy;
  c->time_phases = f.time_phases;
  if (!f.time_phases) return;
  if (c->command == Command::evaluate) {
    if (c->model.language_model())
      fail("--time-phases",
           "divides the evaluation of encoders; that of {} has one phase: leave it out",
           c->model.kind());
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

struct WindowFlags {
  const char *start, *stop;
  std::optional<int64_t> first, last;
};

// Two iterations of the training; 0, 0 where neither is given.
std::pair<int64_t, int64_t> resolve_window(const WindowFlags& w, const Flags& f, const Config& c) {
  if (w.first.has_value() != w.last.has_value())
    fail(w.first ? w.start : w.stop, "goes with {}: give the first and the last iteration",
         w.first ? w.stop : w.start);
  if (!w.first) return {0, 0};
  if (c.command == Command::evaluate || f.skip_train)
    fail(w.start, "measures training, and this run does not train: leave it out");
  if (*w.last < *w.first) fail(w.stop, "{} comes before {} {}", *w.last, w.start, *w.first);
  if (*w.last > c.train_iterations)
    fail(w.stop, "{} comes after the last iteration {}", *w.last, c.train_iterations);
  return {*w.first, *w.last};
}

// Each kernel runs by itself, perhaps several times.
void resolve_counters(Config* c) {
  if (c->world_size > 1)
    fail("--profile-counters",
         "runs each kernel by itself, so that an operation between processes would wait forever, "
         "and this run has {}: start one",
         c->world_size);
  if (c->time_phases) fail("--profile-counters", "contradicts --time-phases: leave one out");
  if (c->profile_window.first <= StepGraph::eager_calls)
    fail("--profile-start",
         "the first {} iterations time algorithms, which --profile-counters would disturb: give {} "
         "or later",
         StepGraph::eager_calls, StepGraph::eager_calls + 1);
  c->cuda_graph = false;
  c->notices.emplace_back(
      "--profile-counters: this run records no CUDA graphs and runs each kernel by itself where it "
      "counts: its throughput is not the headline");
}

void resolve_windows(const Flags& f, Config* c) {
  c->throughput_window = resolve_window(
      {"--throughput-start", "--throughput-stop", f.throughput_start, f.throughput_stop}, f, *c);
  c->profile_window =
      resolve_window({"--profile-start", "--profile-stop", f.profile_start, f.profile_stop}, f, *c);
  if (f.profile_dir && !f.profile_start) fail("--profile-dir", "goes with --profile-start");
  if (f.profile_counters && !f.profile_start)
    fail("--profile-counters", "goes with --profile-start: give the iterations to count");
  if (!f.profile_start) return;
  if (c->device == "cpu")
    fail("--profile-start",
         "profiles the kernels of a GPU, and --device is cpu: leave it out, or time the phases of "
         "a step with --time-phases");
  c->profile_dir = f.profile_dir.value_or("profile");
  c->profile_counters = f.profile_counters;
  if (f.profile_counters) return resolve_counters(c);
  c->notices.emplace_back(
      "--profile-start: recording kernels takes time: this run's throughput is not the headline");
}

void resolve_find_batch(const Flags& f, Config* c) {
  c->find_batch = f.find_batch;
  if (!f.find_batch) return;
  if (c->world_size > 1)
    fail("--find-batch", "tries in one process, and this run has {}: start one", c->world_size);
  for (const auto& [flag, given] :
       {std::pair{"--micro-batch-size", f.micro_batch.has_value()},
        std::pair{"--global-batch-size", f.global_batch.has_value()},
        std::pair{"--rampup-batch-size", !f.rampup.empty()}, std::pair{"--plan", f.plan},
        std::pair{"--rehearse", !f.rehearse.empty()}, std::pair{"--skip-train", f.skip_train},
        std::pair{"--reference", f.reference}, std::pair{"--time-phases", f.time_phases},
        std::pair{"--throughput-start", f.throughput_start.has_value()},
        std::pair{"--throughput-stop", f.throughput_stop.has_value()},
        std::pair{"--profile-start", f.profile_start.has_value()},
        std::pair{"--profile-stop", f.profile_stop.has_value()},
        std::pair{"--save", !f.save.empty()}, std::pair{"--save-hf", !f.save_hf.empty()},
        std::pair{"--load", !f.load.empty()}})
    if (given) fail(flag, "contradicts --find-batch, which trains nothing: leave one out");
}

}  // namespace

Flags flags_of_find_batch(const Flags& f) {
  Flags one_step = f;
  if (!f.train_iterations && !f.train_samples && !f.epochs) one_step.train_iterations = 1;
  return one_step;
}

void resolve_measuring(const Flags& f, Config* c) {
  resolve_find_batch(f, c);
  resolve_phases(f, c);
  resolve_windows(f, c);
}

}  // namespace tally::train
