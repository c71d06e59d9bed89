// Measurements besides those of the steps: phases, throughput between two iterations.
#include <utility>

#include "src/config/resolve_parts.h"
#include "src/device/graph.h"

namespace tally::train {
namespace {

void resolve_phases(Config* c) {
  if (!c->time_phases) return;
  if (c->command == Command::evaluate) {
    if (c->model.language_model())
      fail("--time-phases",
           "divides the evaluation of encoders; that of {} has one phase: leave it out",
           c->model.kind());
    return;
  }
  if (c->skip_train)
    fail("--time-phases", "times the phases of training, and --skip-train leaves it out");
  if (c->pipeline_parallel > 1)
    fail("--time-phases",
         "the passes of a pipeline's micro batches overlap: take --pipeline-model-parallel-size 1");
  // Each of these lets one phase overlap with another.
  c->cuda_graph = false;
  c->policy.fusions.deferred_update = false;
  c->gradient_bucket = 0;
  c->notices.emplace_back(
      "--time-phases: the run waits for the device after each phase of a step, reduces gradients "
      "after the backward pass and records no graphs: its throughput is not the headline");
}

// Checks two iterations of the training; 0, 0 where neither is given.
void check_window(const char* start, const char* stop, const std::pair<int64_t, int64_t>& window,
                  const Config& c) {
  const auto& [first, last] = window;
  if ((first == 0) != (last == 0))
    fail(first > 0 ? start : stop, "goes with {}: give the first and the last iteration",
         first > 0 ? stop : start);
  if (first == 0) return;
  if (c.command == Command::evaluate || c.skip_train)
    fail(start, "measures training, and this run does not train: leave it out");
  if (last < first) fail(stop, "{} comes before {} {}", last, start, first);
  if (last > c.train_iterations)
    fail(stop, "{} comes after the last iteration {}", last, c.train_iterations);
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

void resolve_windows(Config* c) {
  check_window("--throughput-start", "--throughput-stop", c->throughput_window, *c);
  check_window("--profile-start", "--profile-stop", c->profile_window, *c);
  const bool profiles = c->profile_window.first > 0;
  if (!c->profile_dir.empty() && !profiles) fail("--profile-dir", "goes with --profile-start");
  if (c->profile_counters && !profiles)
    fail("--profile-counters", "goes with --profile-start: give the iterations to count");
  if (!profiles) return;
  if (c->device == "cpu")
    fail("--profile-start",
         "profiles the kernels of a GPU, and --device is cpu: leave it out, or time the phases of "
         "a step with --time-phases");
  if (c->profile_dir.empty()) c->profile_dir = "profile";
  if (c->profile_counters) return resolve_counters(c);
  c->notices.emplace_back(
      "--profile-start: recording kernels takes time: this run's throughput is not the headline");
}

// The steps that are done again are explain_steps (src/train/step/explain.h).
void resolve_explain(const Config& c) {
  constexpr int64_t fewest = 20;
  if (!c.explain) return;
  if (c.command == Command::evaluate || c.skip_train)
    fail("--explain", "--witness-steps",
         "measures training, and this run does not train: leave it out");
  if (c.device == "cpu")
    fail(
        "--explain",
        "reads what a GPU did from CUPTI, and --device is cpu: leave it out, or time the phases of "
        "a step with --time-phases");
  if (c.time_phases) fail("--explain", "contradicts --time-phases: leave one out");
  if (c.profile_window.first > 0)
    fail("--explain", "contradicts --profile-start, as CUPTI serves one at a time: leave one out");
  if (c.train_iterations > 0 && c.train_iterations < fewest)
    fail("--explain", "does the last steps again: train for {} steps or more", fewest);
}

void resolve_witness(const Config& c) {
  constexpr const char* flag = "--witness-steps";
  if (c.witness_steps == 0) return;
  if (c.command == Command::evaluate || c.skip_train)
    fail(flag, "witnesses training, and this run does not train: leave it out");
  if (c.world_size > 1)
    fail(flag, "computes in one process, and this run has {}: start one", c.world_size);
  if (c.train_iterations > 0 && c.witness_steps > c.train_iterations)
    fail(flag, "{} is more than the {} steps of the run", c.witness_steps, c.train_iterations);
  const ModelConfig& m = c.model;
  if (m.hidden_dropout > 0 || m.attention_dropout > 0)
    fail(flag,
         "dropout draws other masks on a GPU: give --hidden-dropout 0 and --attention-dropout 0");
}

void check_find_batch(const Flags& f, const Config& c) {
  if (!c.find_batch) return;
  if (c.world_size > 1)
    fail("--find-batch", "tries in one process, and this run has {}: start one", c.world_size);
  if (const char* flag =
          f.first_given({"--micro-batch-size", "--global-batch-size", "--rampup-batch-size",
                         "--plan", "--rehearse", "--skip-train", "--reference", "--time-phases",
                         "--explain", "--throughput-start", "--throughput-stop", "--profile-start",
                         "--profile-stop", "--save", "--save-hf", "--load"}))
    fail(flag, "contradicts --find-batch, which does not train: leave one out");
}

}  // namespace

Flags flags_of_find_batch(const Flags& f) {
  Flags one_step = f;
  if (!f.train_iterations && !f.train_samples && !f.epochs) one_step.train_iterations = 1;
  return one_step;
}

void resolve_measuring(const Flags& f, Config* c) {
  check_find_batch(f, *c);
  resolve_phases(c);
  resolve_windows(c);
  resolve_explain(*c);
  resolve_witness(*c);
}

}  // namespace tally::train
