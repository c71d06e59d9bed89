// The steps of a training run. On a GPU the host only enqueues. It waits when a log line, an
// evaluation or a checkpoint needs the results of the steps.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/config/config.h"
#include "src/data/tokens/dataset.h"
#include "src/device/graph.h"
#include "src/measure/energy.h"
#include "src/measure/record.h"
#include "src/model/stage.h"
#include "src/optim/optimizer.h"
#include "src/parallel/control/operations.h"
#include "src/train/run/failures.h"
#include "src/train/score/evaluator.h"
#include "src/train/step/forward_backward.h"
#include "src/train/step/progress.h"
#include "src/train/step/step_results.h"
#include "src/train/step/step_window.h"
#include "src/train/step/stop_vote.h"
#include "src/train/step/training_log.h"

namespace tally::train {

// The objects that the loop works on; all of them outlive the loop.
struct LoopParts {
  const Config& config;
  Stream& stream;
  ParameterTable& table;
  std::vector<Stage*> stages;  // this process's, in the order of their layers
  Optimizer& optimizer;
  Samples train;
  Samples validation;  // empty: no evaluation
  // The processes of the run. Each runs a loop of its own, and all decide alike.
  const Mesh& mesh;
  // Test data, evaluated once, after the last step; empty: none.
  Samples test = nullptr;
  // Observes the steps of config.profile_window; null: none.
  StepWindow* window = nullptr;
  // Hears which steps are done; null: no energy is measured.
  EnergySampler* energy = nullptr;
};

// The callbacks of the loop.
struct LoopHooks {
  // Called after every finished step; an outcome other than completed ends the run.
  std::function<Ending()> stop = [] { return Ending{}; };
  // Writes a checkpoint of the state after the `done` steps; the device is idle.
  std::function<void(const Progress& done)> save;
  // Checks that all processes have the same weights; the device is idle.
  std::function<void()> check_weights = [] {};
  // Called before the first step and after each of those in which algorithms are tuned.
  std::function<void()> agree_on_algorithms = [] {};
  // Called when there are more steps, intervals, evaluations or epochs.
  std::function<void()> recorded = [] {};
  // Called around each evaluation on validation data.
  std::function<void(const Progress& done)> evaluating = [](const Progress&) {};
  std::function<void(const Progress& done, double loss)> evaluated = [](const Progress&, double) {};
  // A line for standard output.
  std::function<void(const std::string&)> print = [](const std::string&) {};
};

class StepLoop {
 public:
  // `lists` get steps, intervals and evaluations as they become known.
  StepLoop(const LoopParts& parts, LoopHooks hooks, RunLists* lists);
  ~StepLoop();
  StepLoop(const StepLoop&) = delete;
  StepLoop& operator=(const StepLoop&) = delete;

  // Trains from the finished steps of `done` to the last, or until it is asked to stop; saves at
  // the end when there is a save hook. Throws CheckFailed when a loss or a gradient is not finite
  // (fp16 overflows that lower the loss scale are no failure), and what operations throw.
  Ending run(const Progress& done);
  // The steps that have been done, and whether the training has come to its end: to its last step,
  // or to --target-loss where there is one.
  const Progress& done() const { return enqueued_; }
  bool succeeded() const;

  // After run(), which did steps: lets repeat() begin so many steps before the last one's end.
  void rewind(int64_t steps);
  // Does the next steps, as run() did, but keeps nothing of them: no log line, no results. With
  // Calls::eager nothing is replayed from a CUDA graph. The device is idle before and after.
  enum class Calls : uint8_t { recorded, eager };
  void repeat(int64_t steps, Calls calls = Calls::recorded);
  // Lets `hook` hear the GEMMs of the stages, until it is replaced by an empty one.
  void hear_gemms(const GemmHook& hook) {
    for (Stage* stage : parts_.stages) stage->set_gemm_hook(hook);
  }

 private:
  // The work that is due after the step that was enqueued last.
  struct Due {
    bool log, evaluation, check, save, epoch_end;
  };

  void step();
  void update();
  void learn_outcomes(int first);
  Due due() const;
  void do_what_is_due(const Due& due);
  void take_results();
  void forget_results();
  void check(const Step& step) const;
  void check_evaluation() const;
  void evaluate(const std::string& where);
  void end_epoch();
  void save();
  void finish(bool finished);
  Ending told_to_stop();

  LoopParts parts_;
  LoopHooks hooks_;
  RunLists* lists_;
  StepResults results_;
  ForwardBackward forward_backward_;
  std::unique_ptr<PhaseTimer> timer_;           // null without --time-phases
  std::unique_ptr<StepGraph> recorded_update_;  // null: not recorded
  OperationWatch* watch_;                       // null: one process
  StopVote stop_;
  TrainingLog log_;
  Evaluator evaluator_;
  std::unique_ptr<MicroBatches> loader_;

  // Progress of the enqueued steps, and samples of the last one; scheduled_samples counts only
  // steps whose outcome the host knows.
  Progress enqueued_;
  int64_t saved_ = -1, evaluated_ = -1;
  int64_t last_samples_ = 0;
  bool reached_ = false;  // --target-loss
};

}  // namespace tally::train
