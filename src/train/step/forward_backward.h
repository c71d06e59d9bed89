// Loss and gradients of a step: the forward and backward passes of its micro batches, one after the
// other or in a pipeline's order, and the sums of the gradients over the processes. On a GPU the
// passes of one stage are recorded as CUDA graphs and replayed.
#pragma once

#include <array>
#include <memory>

#include "src/config/config.h"
#include "src/data/tokens/batches.h"
#include "src/device/events.h"
#include "src/device/graph.h"
#include "src/model/stage.h"
#include "src/optim/gradient_reducer.h"
#include "src/optim/optimizer.h"
#include "src/parallel/collectives/mesh.h"
#include "src/train/feed/loader.h"
#include "src/train/step/phase_timer.h"
#include "src/train/step/pipeline.h"

namespace tally::train {

// Whether a run's steps are recorded.
bool records_graphs(const Config& config, const Stream& stream);

class ForwardBackward {
 public:
  // `slots`: steps that may be enqueued before the host waits for their results. All outlive it.
  // Throws OutOfMemory.
  ForwardBackward(const Config& config, Stream& stream, ParameterTable& table,
                  const std::vector<Stage*>& stages, const Mesh& mesh, Optimizer& optimizer,
                  int slots);
  ~ForwardBackward();
  ForwardBackward(const ForwardBackward&) = delete;
  ForwardBackward& operator=(const ForwardBackward&) = delete;

  // Enqueues the step that begins after `consumed` samples of the run. `slot`: see StepResults.
  // Afterwards the state has this rank's loss and the parameter table all ranks' gradients, under
  // ZeRO those of this rank's shares.
  void run(MicroBatches* loader, int64_t consumed, int slot);

  // Lets `timer` time the phases of every step from here on, which are neither recorded nor divided
  // among pipeline stages. It outlives this; null: none.
  void set_phase_timer(PhaseTimer* timer) { timer_ = timer; }

  // Whether steps from here on call everything, also what is recorded.
  void set_eager(bool eager) { eager_ = eager; }

  // Evaluations may use it between two steps.
  Pipeline& pipeline() { return pipeline_; }

 private:
  void count_labels(MicroBatches* loader, int64_t micro_batches, int slot);
  void run_stage(MicroBatches* loader, int64_t consumed, int slot);
  void run_pipeline(MicroBatches* loader, int64_t consumed, int slot);
  void finish_gradients();
  void phase_ends(StepPhase phase) {
    if (timer_) timer_->end(phase);
  }
  void forget_graphs_of_other_weights(int64_t micro_batches);
  Pass pass_of(const Batch& batch, int64_t consumed, int64_t micro_batch, int slot);
  void set_in_state(int slot, int64_t micro_batch);
  uint64_t dropout_seed(int64_t consumed, int64_t micro_batch) const;

  const Config& config_;
  Stream& stream_;
  const ParameterTable& table_;
  const Mesh& mesh_;
  StepState* const state_;  // in device memory
  const Sharding* const sharding_;
  WeightGather* const gather_;  // null: no sharding
  const bool graphs_, dropout_;
  const int64_t most_micro_batches_;  // a step's, once the global batch has its full size

  Pipeline pipeline_;
  PhaseTimer* timer_ = nullptr;
  bool eager_ = false;
  bool staged_ = false;  // whether passes read what differs from the state
  HostMemory staging_;   // [slots, micro batches] StepState::MicroBatch
  HostMemory counts_;    // [slots] StepState::counted, of this replica
  HostMemory labels_;    // [slots] StepState::labels
  GradientReducer reducer_;
  // Gradients that are added up besides, by Reduction.
  std::vector<Tensor> of_shards_, of_ends_;
  // Recorded micro batches, by index: 1 if the micro batch is the step's first, which overwrites
  // the gradients, plus 2 if it is the last, after which they are reduced.
  std::array<std::unique_ptr<StepGraph>, 4> recorded_;
  int64_t recorded_micro_batches_ = 0;  // micro batches of the recorded steps
};

}  // namespace tally::train
