// AdamW, LAMB or SGD over a parameter table, with the device-side state of a step. It owns master
// weights and moments.
//
//   optimizer.begin_step(learning_rate(config.optimizer, samples));  // the host fills the StepState
//   stage.forward(batch, {weight, seed, optimizer.state()}, set);    // for every micro batch
//   stage.backward(set);
//   optimizer.apply();                          // norm, clipping, update: enqueues only
//   StepState done = optimizer.finish_step();   // waits: loss, norm, overflow
#pragma once

#include <cstdint>
#include <optional>

#include "src/config/config.h"
#include "src/nn/parameters.h"
#include "src/ops/optimizer/optimizer.h"
#include "src/optim/lamb.h"
#include "src/optim/loss_scaler.h"
#include "src/optim/optimizer_state.h"
#include "src/optim/schedule.h"
#include "src/optim/sharding.h"
#include "src/optim/weight_gather.h"
#include "src/parallel/collectives/mesh.h"

namespace tally::train {

class Optimizer {
 public:
  // `table` was laid out on `stream`. `mesh`: the processes of the run; null: this one alone.
  // `sharding`: how replicas share the state; null: each has all of it. All of them outlive this.
  // Throws OutOfMemory.
  Optimizer(const Config& config, const ParameterTable& table, Stream& stream,
            const Mesh* mesh = nullptr, const Sharding* sharding = nullptr);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // The state is in device memory; operations read and write it. Its address never changes.
  StepState* state() const { return state_; }
  const OptimizerBuffers& buffers() const { return buffers_.buffers(); }
  const Sharding* sharding() const { return sharding_; }  // null: none
  // The gather of weights that other processes update; null without sharding.
  WeightGather* gather() { return gather_ ? &*gather_ : nullptr; }
  // Fills the state for the next update and zeroes the loss. Must not be recorded in a graph. The
  // weight decay is the configuration's first.
  void begin_step(double learning_rate);
  // The same without waiting, copied from `staging`: pinned host memory that must stay unchanged
  // until the device has done the copy. `after_skip`: the rates that hold instead if the update
  // before was skipped; for a host that does not know. `stop_votes`: see StepState. Its `labels`
  // are 1, as where all labels count.
  void begin_step(const Rates& rates, const Rates& after_skip, StepState* staging,
                  double stop_votes = 0);
  // The step's gradients to new weights. The gradients are zero afterwards unless the next step's
  // first micro batch overwrites them (Batch::first). Enqueues only.
  void apply(bool zero_gradients = true);
  // Whether updates may be deferred. LAMB's may not, because its ratios need the norms of whole
  // parameters first; SGD has no kernel for few SMs.
  bool can_defer() const { return kind_ == OptimizerKind::adam; }
  // Makes apply() skip the parameters [first, last) of the flat buffers and leave their gradients
  // from here on, until update_deferred() or complete(). Call it before the first step, or after
  // complete(). Throws std::logic_error unless can_defer().
  void defer(int64_t first, int64_t last);
  // The deferred update of [first, last) for the last applied step, on `s`, where it may overlap
  // with other work, see adamw_step(). Does nothing after complete(). Enqueues only.
  void update_deferred(Stream& s, int64_t first, int64_t last, int sms);
  // Makes apply() leave the gathering of the new weights from here on to gather(), which the next
  // step's forward pass does, or to complete(). Call it before the first step, or after complete().
  void defer_gather(bool defer) { gathers_later_ = defer; }
  // Does all deferred updates and gathers that are outstanding. Afterwards weights and the
  // optimizer's state are those of the last step. Collective over the replicas under sharding.
  void complete();
  // Waits for the step, updates the loss scale and counts the update unless it was skipped.
  StepState finish_step();
  // The same without waiting. With a dynamic scale the device decides by itself whether to skip the
  // update, and learn() tells the host later; else the update is counted.
  void finish_enqueued();
  // Takes over the loss scale and the count of updates from the state that a step left.
  void learn(const StepState& state);

  // Updates done: t of Adam's bias corrections.
  int64_t updates() const { return updates_; }
  LossScaler& scaler() { return scaler_; }
  const LossScaler& scaler() const { return scaler_; }
  void restore(int64_t updates, const LossScaler::State& scale);

 private:
  void fill_kept(StepState* state) const;
  void forget_deferred();
  void take_norm();
  int64_t decayed_of(const FlatRange& range) const;
  void update_owned();
  void update(Stream& s, int64_t first, int64_t last, const StepState* state, bool zero_gradients,
              int sms = 0);
  // Neighbouring elements of the flat buffers, which a kernel updates together.
  struct Elements {
    FlatRange range;
    Tensor gradients, master, first_moment, second_moment, weights;
  };
  void update(Stream& s, const Elements& e, const StepState* state, bool zero_gradients, int sms);

  const OptimizerKind kind_;
  const AdamW hyper_;
  const double momentum_, clip_, weight_decay_;
  const ParameterTable& table_;
  OptimizerState buffers_;
  Stream& stream_;
  Communicator* const parts_;  // the processes that have parts of a gradient; null: this one alone
  const Sharding* const sharding_;
  std::optional<WeightGather> gather_;
  std::optional<Lamb> lamb_;  // only for OptimizerKind::lamb
  LossScaler scaler_;
  int64_t updates_ = 0;
  StepState* state_ = nullptr;
  // The deferred range, and the state of its step in device memory; while there is none, its
  // found_inf is set, which skips updates.
  int64_t deferred_first_ = 0, deferred_last_ = 0;
  StepState* deferred_state_ = nullptr;
  bool gathers_later_ = false;
  bool outstanding_ = false;  // an applied step's deferred part may not be done
};

}  // namespace tally::train
