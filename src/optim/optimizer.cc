#include "src/optim/optimizer.h"

#include <algorithm>
#include <cmath>

namespace tally::train {

Optimizer::Optimizer(const Config& config, ParameterTable& table, Stream& stream)
    : hyper_{config.optimizer.beta1, config.optimizer.beta2, config.optimizer.epsilon},
      clip_(config.optimizer.clip),
      weight_decay_(config.optimizer.weight_decay),
      table_(table),
      stream_(stream),
      scaler_(config) {
  const size_t bytes = norm_workspace(stream, table.elements());
  workspace_ = Tensor(nullptr, DType::u8, {static_cast<int64_t>(bytes)});
  workspace_.data = stream.allocate(bytes, "workspace of the gradient norm");
  state_ = static_cast<StepState*>(stream.allocate(sizeof(StepState), "state of a step"));
  restore(0, scaler_.state());
}

Optimizer::~Optimizer() {
  stream_.release(state_);
  stream_.release(workspace_.data);
}

void Optimizer::begin_step(double learning_rate) {
  StepState staging;
  // So few bytes from pageable memory are copied out before the call returns.
  begin_step(learning_rate, &staging);
}

void Optimizer::begin_step(double learning_rate, StepState* staging) {
  const double t = static_cast<double>(updates_ + 1);
  StepState s{};
  s.learning_rate = learning_rate;
  s.bias_correction1 = 1 - std::pow(hyper_.beta1, t);
  s.bias_correction2 = 1 - std::pow(hyper_.beta2, t);
  s.weight_decay = weight_decay_;
  s.clip = static_cast<float>(clip_);
  if (!scaler_.dynamic()) fill_kept(&s);
  *staging = s;
  // What a dynamic scale needs stays as the last step left it.
  stream_.copy(state_, staging, scaler_.dynamic() ? step_state_host_bytes : sizeof(s));
}

void Optimizer::fill_kept(StepState* s) const {
  const LossScaler::State scale = scaler_.state();
  s->loss_scale = s->step_loss_scale = static_cast<float>(scale.scale);
  s->dynamic_scale = scaler_.dynamic() ? 1 : 0;
  s->scale_window = static_cast<int32_t>(std::min<int64_t>(scaler_.window(), INT32_MAX));
  s->scale_hysteresis = static_cast<int32_t>(std::min<int64_t>(scaler_.hysteresis(), INT32_MAX));
  s->scale_growth_steps = static_cast<int32_t>(scale.growth_steps);
  s->scale_hysteresis_left = static_cast<int32_t>(scale.hysteresis_left);
  s->scale_minimum = static_cast<float>(scaler_.minimum());
  s->updates = updates_;
  s->beta1 = hyper_.beta1;
  s->beta2 = hyper_.beta2;
}

void Optimizer::apply(bool zero_gradients) {
  gradient_norm(stream_, table_.gradients(), state_, workspace_);
  adamw_step(stream_, hyper_, state_, table_.decayed_elements(), table_.gradients(),
             table_.master(), table_.first_moment(), table_.second_moment(), table_.weights(),
             zero_gradients);
}

StepState Optimizer::finish_step() {
  StepState s{};
  stream_.copy(&s, state_, sizeof(s));
  stream_.synchronize();
  if (scaler_.dynamic()) {
    learn(s);
  } else if (s.found_inf == 0) {
    ++updates_;
  }
  return s;
}

void Optimizer::finish_enqueued() {
  if (!scaler_.dynamic()) ++updates_;
}

void Optimizer::learn(const StepState& s) {
  if (!scaler_.dynamic()) return;
  updates_ = s.updates;
  scaler_.restore({s.loss_scale, s.scale_growth_steps, s.scale_hysteresis_left});
}

void Optimizer::restore(int64_t updates, const LossScaler::State& scale) {
  updates_ = updates;
  scaler_.restore(scale);
  StepState s{};
  fill_kept(&s);
  // So few bytes from pageable memory are copied out before the call returns.
  stream_.copy(state_, &s, sizeof(s));
}

}  // namespace tally::train
