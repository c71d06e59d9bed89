// AdamW over a parameter table, with the device-side state of a step. It owns master weights and
// moments.
//
//   optimizer.begin_step(learning_rate(config.optimizer, samples));  // the host fills the StepState
//   stage.forward(batch, {weight, seed, optimizer.state()}, set);    // for every micro batch
//   stage.backward(set);
//   optimizer.apply();                          // norm, clipping, update: enqueues only
//   StepState done = optimizer.finish_step();   // waits: loss, norm, overflow
#pragma once

#include <cstdint>

#include "src/config/config.h"
#include "src/nn/parameters.h"
#include "src/ops/optimizer/optimizer.h"
#include "src/optim/loss_scaler.h"
#include "src/optim/optimizer_state.h"

namespace tally::train {

class Optimizer {
 public:
  // `table` was laid out on `stream`; both outlive this. Throws OutOfMemory.
  Optimizer(const Config& config, const ParameterTable& table, Stream& stream);
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // In device memory; operations read and write it. It never moves.
  StepState* state() const { return state_; }
  const OptimizerBuffers& buffers() const { return buffers_.buffers(); }
  // Of the steps from here on.
  void set_weight_decay(double weight_decay) { weight_decay_ = weight_decay; }
  // Fills it for the next update and zeroes the loss. Not to be recorded in a graph.
  void begin_step(double learning_rate);
  // The same, copied from `staging` (page-locked memory of the host, left alone until the device
  // has passed the copy), so that nothing waits. `stop_votes`: of the StepState.
  void begin_step(double learning_rate, StepState* staging, double stop_votes = 0);
  // The step's gradients to new weights. The gradients are zero afterwards unless the next step's
  // first micro batch overwrites them (Batch::first). Enqueues only.
  void apply(bool zero_gradients = true);
  // From here on apply() leaves the parameters [first, last) of the flat buffers as they are, with
  // their gradients, until update_deferred() or complete(). Call before the first step, or after
  // complete().
  void defer(int64_t first, int64_t last);
  // The last applied step's update of [first, last) on `s`, which may run beside other work, see
  // adamw_step(); nothing after complete(). Enqueues only.
  void update_deferred(Stream& s, int64_t first, int64_t last, int sms);
  // The update of all that was deferred, unless a step since updated it. Weights and the
  // optimizer's state are whole afterwards.
  void complete();
  // Waits for the step, learns the loss scale and counts the update unless it was left out.
  StepState finish_step();
  // The same without waiting: with a dynamic scale the device has decided by itself whether the
  // update is left out, and learn() tells the host later; else the update is counted.
  void finish_enqueued();
  // The state that a step left, read back: the host's loss scale and updates follow the device's.
  void learn(const StepState& state);

  // Updates done: t of Adam's bias corrections.
  int64_t updates() const { return updates_; }
  LossScaler& scaler() { return scaler_; }
  const LossScaler& scaler() const { return scaler_; }
  void restore(int64_t updates, const LossScaler::State& scale);

 private:
  void fill_kept(StepState* state) const;
  void forget_deferred();
  void update(Stream& s, int64_t first, int64_t last, const StepState* state, bool zero_gradients,
              int sms = 0);

  const AdamW hyper_;
  const double clip_;
  double weight_decay_;
  const ParameterTable& table_;
  OptimizerState buffers_;
  Stream& stream_;
  LossScaler scaler_;
  int64_t updates_ = 0;
  StepState* state_ = nullptr;
  // What is deferred, and the state of the step that it belongs to, in device memory; found_inf,
  // which leaves an update out, while there is none.
  int64_t deferred_first_ = 0, deferred_last_ = 0;
  StepState* deferred_state_ = nullptr;
  bool outstanding_ = false;  // an applied step's deferred part may not have been updated
  Tensor workspace_;
};

}  // namespace tally::train
