// A model as the training loop sees it: explicit forward and backward over memory planned once, or
// the autograd reference behind the same interface.
#pragma once

#include <functional>
#include <memory>

#include "src/config/config.h"
#include "src/nn/parameters.h"
#include "src/device/step_state.h"
#include "src/device/compute_options.h"
#include "src/device/tensor.h"

namespace tally::train {

// One micro batch in device memory: ids[B,T], targets[B,T], i32; a negative target does not count.
struct Batch {
  Tensor ids, targets;
  int64_t counted = -1;  // targets that count (whoever fills the batch knows); -1: all
  bool first = false;    // of its step: gradients are overwritten, whatever they were
};

class Model {
 public:
  virtual ~Model() = default;
  // Forward, loss and backward of one micro batch. Gradients are added to the parameter table's;
  // the mean loss * `weight` is added to state->loss_sum (weight = 1 / micro batches of the step);
  // gradients carry weight * state->loss_scale. The seed differs per step and micro batch; the
  // value 0 turns dropout off. Enqueues only: no allocation, no synchronisation.
  virtual void forward_backward(const Batch& batch, double weight, DropoutSeed dropout,
                                StepState* state) = 0;
  // Forward and loss only, without dropout.
  virtual void evaluate(const Batch& batch, double weight, StepState* state) = 0;
  virtual size_t activation_bytes() const = 0;
  // `hook` is called by forward_backward() as soon as the gradient of a parameter is final and work
  // on it may be enqueued: matrices of the blocks, from the last down. Models that do not know
  // leave it out.
  void set_gradient_hook(std::function<void(const Tensor& gradient)> hook) {
    gradient_hook_ = std::move(hook);
  }

  // Parameters that the forward pass needs late enough for their update to run beside it.
  struct DeferredParameters {
    int64_t first = 0, last = 0;  // elements of the flat buffers; none when equal
  };
  virtual DeferredParameters deferred_parameters() const { return {}; }
  // Updates elements [first, last) of the flat buffers from the last step's gradients, on `stream`
  // and on so many sms (0: all).
  using Update =
      std::function<void(Stream& stream, int64_t first, int64_t last, int sms)>;
  // From here on forward_backward() of a step's first micro batch (Batch::first) calls `update` for
  // all late parameters, piece by piece, and its forward pass waits for each.
  void set_deferred_update(Update update) { deferred_update_ = std::move(update); }

 protected:
  void gradient_is_final(const Tensor& gradient) const {
    if (gradient_hook_) gradient_hook_(gradient);
  }
  bool reports_gradients() const { return static_cast<bool>(gradient_hook_); }
  const Update& deferred_update() const { return deferred_update_; }

 private:
  std::function<void(const Tensor&)> gradient_hook_;
  Update deferred_update_;
};

// Registers GPT's parameters in `table` (before layout()).
void register_gpt(const ModelConfig& config, ParameterTable* table);
// The explicit model (model/gpt.cc). `table` is laid out and outlives the model.
std::unique_ptr<Model> make_gpt(const Config& config, ParameterTable& table, const Compute& compute);
// The autograd reference over the same parameters (reference/gpt.cc).
std::unique_ptr<Model> make_reference_gpt(const Config& config, ParameterTable& table,
                                          const Compute& compute);

}  // namespace tally::train
