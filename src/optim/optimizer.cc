#include "src/optim/optimizer.h"

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
  stream.fill_zero(state_, sizeof(StepState));
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
  s.loss_scale = static_cast<float>(scaler_.scale());
  s.clip = static_cast<float>(clip_);
  *staging = s;
  stream_.copy(state_, staging, sizeof(s));
}

void Optimizer::apply() {
  gradient_norm(stream_, table_.gradients(), state_, workspace_);
  adamw_step(stream_, hyper_, state_, table_.decayed_elements(), table_.gradients(),
             table_.master(), table_.first_moment(), table_.second_moment(), table_.weights(),
             true);
}

StepState Optimizer::finish_step() {
  StepState s{};
  stream_.copy(&s, state_, sizeof(s));
  stream_.synchronize();
  finish_step(s.found_inf != 0);
  return s;
}

void Optimizer::finish_step(bool left_out) {
  scaler_.update(left_out);
  if (!left_out) ++updates_;
}

void Optimizer::restore(int64_t updates, const LossScaler::State& scale) {
  updates_ = updates;
  scaler_.restore(scale);
}

}  // namespace tally::train
