#include "src/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tally::train {

namespace {

// The processes that have parts of the gradient of one batch; null: this one has it all.
Communicator* with_parts(const Mesh* mesh, const Sharding* sharding) {
  if (!mesh) return sharding ? &sharding->replicas() : nullptr;
  Communicator& all = sharding ? mesh->world() : mesh->model();
  return all.size() > 1 ? &all : nullptr;
}

}  // namespace

Optimizer::Optimizer(const Config& config, const ParameterTable& table, Stream& stream,
                     const Mesh* mesh, const Sharding* sharding)
    : kind_(config.optimizer.kind),
      hyper_{config.optimizer.beta1, config.optimizer.beta2, config.optimizer.epsilon},
      momentum_(config.optimizer.sgd_momentum),
      clip_(config.optimizer.clip),
      weight_decay_(config.optimizer.weight_decay),
      table_(table),
      buffers_(table, stream, kind_, sharding ? sharding->owned() : std::vector<FlatRange>()),
      stream_(stream),
      parts_(with_parts(mesh, sharding)),
      sharding_(sharding),
      scaler_(config) {
  if (sharding) gather_.emplace(stream, table, *sharding, mesh ? &mesh->tensor() : nullptr);
  if (kind_ == OptimizerKind::lamb) lamb_.emplace(hyper_, table, buffers(), stream, mesh, sharding);
  state_ = static_cast<StepState*>(stream.allocate(sizeof(StepState), "state of a step"));
  restore(0, scaler_.state());
}

Optimizer::~Optimizer() {
  stream_.release(state_);
  stream_.release(deferred_state_);
}

void Optimizer::begin_step(double learning_rate) {
  StepState staging;
  // So few bytes are copied out of pageable memory before the call returns.
  const Rates rates{learning_rate, weight_decay_};
  begin_step(rates, rates, &staging);
}

void Optimizer::begin_step(const Rates& rates, const Rates& after_skip, StepState* staging,
                           double stop_votes) {
  const double t = static_cast<double>(updates_ + 1);
  StepState s{};
  s.learning_rate = rates.learning_rate;
  s.weight_decay = rates.weight_decay;
  s.learning_rate_after_skip = after_skip.learning_rate;
  s.weight_decay_after_skip = after_skip.weight_decay;
  s.bias_correction1 = 1 - std::pow(hyper_.beta1, t);
  s.bias_correction2 = 1 - std::pow(hyper_.beta2, t);
  s.clip = static_cast<float>(clip_);
  s.stop_votes = stop_votes;
  s.labels[0] = s.labels[1] = 1;
  if (!scaler_.dynamic()) fill_kept(&s);
  *staging = s;
  // The fields of a dynamic scale stay as the last step left them.
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

void Optimizer::update(Stream& s, int64_t first, int64_t last, const StepState* state,
                       bool zero_gradients, int sms) {
  if (first >= last) return;
  const auto range = [&](const Tensor& flat) { return flat.rows(first, last - first); };
  update(s,
         {{first, last},
          range(table_.gradients()),
          range(buffers().master),
          range(buffers().first_moment),
          range(buffers().second_moment),
          range(table_.weights())},
         state, zero_gradients, sms);
}

void Optimizer::update(Stream& s, const Elements& e, const StepState* state, bool zero_gradients,
                       int sms) {
  const FlatUpdate flat{.gradients = Out(e.gradients),
                        .master = Out(e.master),
                        .m = Out(e.first_moment),
                        .v = Out(e.second_moment),
                        .weights = Out(e.weights),
                        .decayed = decayed_of(e.range),
                        .zero_gradients = zero_gradients};
  if (kind_ == OptimizerKind::sgd) return sgd_step(s, momentum_, state, flat);
  adamw_step(s, hyper_, state, flat, sms);
}

int64_t Optimizer::decayed_of(const FlatRange& range) const {
  return std::clamp<int64_t>(table_.decayed_elements() - range.first, 0, range.count());
}

// The update of this process's shares.
void Optimizer::update_owned() {
  int64_t at = 0;
  for (const Sharding::Range& r : sharding_->ranges()) {
    const auto own = [&](const Tensor& state) { return state.rows(at, r.own.count()); };
    update(stream_,
           {r.own, r.own_gradient, own(buffers().master), own(buffers().first_moment),
            own(buffers().second_moment), table_.weights().rows(r.own.first, r.own.count())},
           state_, false, 0);
    at += r.own.count();
  }
}

// Each process adds the squares of its own part. A part that several processes have counts once.
void Optimizer::take_norm() {
  if (!parts_) return gradient_norm(stream_, table_.gradients(), state_);
  const auto add = [&](const Tensor& gradients) {
    add_gradient_squares(stream_, gradients, state_);
  };
  for (const auto& [first, last] : table_.counted_ranges()) {
    if (!sharding_) {
      add(table_.gradients({first, last}));
      continue;
    }
    for (const Sharding::Range& r : sharding_->ranges()) {
      const int64_t begin = std::max(first, r.own.first), end = std::min(last, r.own.last);
      if (begin < end) add(r.own_gradient.rows(begin - r.own.first, end - begin));
    }
  }
  parts_->all_reduce(stream_, Tensor(&state_->gradient_squares, DType::f64, {1}));
  finish_gradient_norm(stream_, state_);
}

void Optimizer::apply(bool zero_gradients) {
  take_norm();
  if (lamb_) lamb_->step(state_, zero_gradients);
  if (sharding_) {
    if (!lamb_) update_owned();
    // All of the gradients are cleared, not only the shares: what other processes own holds this
    // one's addends.
    if (zero_gradients) stream_.fill_zero(table_.gradients().data, table_.gradients().bytes());
    if (!gathers_later_) gather_->all();
    return;
  }
  if (lamb_) return;
  update(stream_, 0, deferred_first_, state_, zero_gradients);
  update(stream_, deferred_last_, table_.elements(), state_, zero_gradients);
  if (deferred_state_) stream_.copy(deferred_state_, state_, sizeof(StepState));
}

void Optimizer::defer(int64_t first, int64_t last) {
  if (first < last && !can_defer()) throw std::logic_error("only AdamW's updates can be deferred");
  deferred_first_ = first;
  deferred_last_ = last;
  if (first >= last || deferred_state_) return;
  deferred_state_ =
      static_cast<StepState*>(stream_.allocate(sizeof(StepState), "state of the last step"));
  forget_deferred();
}

void Optimizer::forget_deferred() {
  StepState nothing{};
  nothing.found_inf = 1;
  // So few bytes are copied out of pageable memory before the call returns.
  stream_.copy(deferred_state_, &nothing, sizeof(nothing));
  outstanding_ = false;
}

void Optimizer::update_deferred(Stream& s, int64_t first, int64_t last, int sms) {
  update(s, first, last, deferred_state_, false, sms);
}

void Optimizer::complete() {
  if (!outstanding_) return;
  if (deferred_state_) {
    update(stream_, deferred_first_, deferred_last_, deferred_state_, false);
    forget_deferred();
  }
  if (gathers_later_) gather_->all();
  outstanding_ = false;
}

StepState Optimizer::finish_step() {
  outstanding_ = deferred_state_ || gathers_later_;
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
  outstanding_ = deferred_state_ || gathers_later_;
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
  // So few bytes are copied out of pageable memory before the call returns.
  stream_.copy(state_, &s, sizeof(s));
}

}  // namespace tally::train
