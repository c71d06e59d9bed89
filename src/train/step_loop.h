// The steps of a training run. On a GPU the host only enqueues: a step's results stay in device
// memory until a log line, an evaluation or a checkpoint needs them.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/data/batches.h"
#include "src/data/dataset.h"
#include "src/device/events.h"
#include "src/device/graph.h"
#include "src/measure/record.h"
#include "src/model/stage.h"
#include "src/optim/gradient_reducer.h"
#include "src/optim/optimizer.h"
#include "src/train/failures.h"
#include "src/train/loader.h"

namespace tally::train {

// What the loop works on; all of it outlives the loop.
struct LoopParts {
  const Config& config;
  Stream& stream;
  ParameterTable& table;
  Stage& stage;
  Optimizer& optimizer;
  std::shared_ptr<const SampleSource> train;
  std::shared_ptr<const SampleSource> validation;  // null: no evaluation
  // Between the data parallel processes, of which this is config.rank. All run a loop of their own
  // and decide alike.
  Communicator& communicator;
  // Evaluated once, after the last step; null: not.
  std::shared_ptr<const SampleSource> test = nullptr;
};

// What the loop asks for from outside.
struct LoopHooks {
  // Called after every finished step; an outcome other than completed ends the run.
  std::function<Ending()> stop = [] { return Ending{}; };
  // Writes a checkpoint of the state after `iteration` steps; the device is idle.
  std::function<void(int64_t iteration, int64_t consumed_samples)> save;
  // Sees whether all processes have the same weights; the device is idle.
  std::function<void()> check_weights = [] {};
  // A line for standard output.
  std::function<void(const std::string&)> print = [](const std::string&) {};
};

class StepLoop {
 public:
  // `record` gets steps, intervals and evaluations as they are known.
  StepLoop(const LoopParts& parts, LoopHooks hooks, Record* record);
  ~StepLoop();
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  // Trains from `iteration` done steps, which used `consumed_samples`, to the last, or until it is
  // told to stop; saves at the end when there is a save hook. Throws CheckFailed when a loss or a
  // gradient is not finite (fp16 overflows that the loss scale answers are no failure), and what
  // operations throw.
  Ending run(int64_t iteration, int64_t consumed_samples);

 private:
  using Clock = std::chrono::steady_clock;
  // Since the last log line.
  struct Tally {
    int64_t steps = 0, skipped = 0, nan = 0, samples = 0;
    double loss_sum = 0;
    Step last;
  };

  void take_global_batch();
  void enqueue_step();
  void enqueue_micro_batches(int slot);
  uint64_t dropout_seed(int64_t micro_batch) const;
  Pass pass_of(int slot, int64_t micro_batch, double weight);
  void share_results();
  Ending agreed_ending() const;
  void say(int slot);
  void hear(int slot) {
    if (parts_.communicator.size() > 1) told_to_stop_ += heard_.as<double>()[slot];
  }
  void finish_enqueued(int slot);
  void flush();
  void take(const StepState& state, double seconds, double learning_rate);
  void check(const Step& step) const;
  void log();
  void evaluate(const std::string& where);
  double evaluation_loss(const std::shared_ptr<const SampleSource>& source, int64_t first_sample);
  void end_epoch(int64_t epoch);
  void save();
  // Work between steps whose time is not training's.
  template <typename Work>
  void untimed(Work&& work);
  bool due(int64_t interval) const { return interval > 0 && iteration_ % interval == 0; }

  LoopParts parts_;
  LoopHooks hooks_;
  Record* record_;
  const int64_t most_micro_batches_;  // of a step, once the global batch has its full size
  const bool dropout_;
  const bool dynamic_scale_;  // fp16 with a scale that follows the overflows, on the device
  const bool graphs_;
  const int ring_;  // steps whose results may wait in device memory

  DeviceBatch batch_;  // in device memory; every micro batch is copied to the same place
  std::unique_ptr<ActivationSet> activations_;  // of the micro batch in flight
  StepState* results_ = nullptr;                // [ring] on the device
  StepState* evaluation_ = nullptr;             // on the device
  HostMemory staging_, read_back_;              // [ring] StepState each
  HostMemory micro_batch_staging_;              // [ring, micro batches] StepState::MicroBatch
  std::unique_ptr<StreamEvents> events_;
  // By what differs: a step's first micro batch overwrites the gradients (1), the last one is added
  // up over processes (2).
  std::array<std::unique_ptr<StepGraph>, 4> micro_graphs_;
  std::unique_ptr<StepGraph> update_graph_;
  GradientReducer reducer_;
  // Whether a process was told to stop: every step adds up what all of them say, and each learns it
  // two steps later, so that all stop after the same step and the host never waits.
  double* stop_sum_ = nullptr;  // on the device
  HostMemory said_, heard_;     // [ring] doubles each
  double told_to_stop_ = 0;     // the sums that were heard
  Ending told_;                 // what this process was told
  std::unique_ptr<BatchLoader> loader_;

  int64_t iteration_ = 0;  // enqueued steps, counted from the very first run
  int64_t consumed_ = 0;   // their samples
  int64_t saved_ = -1, evaluated_ = -1;
  int pending_ = 0;                               // steps in the ring
  std::vector<double> rates_;                     // learning rates of the pending steps
  std::vector<int64_t> batches_;                  // and their global batches
  int64_t global_batch_ = 0, micro_batches_ = 0;  // of the step to come
  double epoch_loss_ = 0;                         // of this epoch's steps that were not skipped
  int64_t epoch_steps_ = 0;
  Tally tally_;
  Clock::time_point interval_start_;
  Clock::duration untimed_{};
};

}  // namespace tally::train
