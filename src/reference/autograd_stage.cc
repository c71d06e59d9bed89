#include "src/reference/autograd_stage.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "src/device/convert.h"
#include "src/device/cpu/aten_views.h"
#include "src/device/philox.h"

namespace tally::train {

// Autograd's graph of one micro batch. Its memory is not reserved.
struct AutogradStage::Graph final : ActivationSet {
  size_t bytes() const override { return 0; }

  std::vector<at::Tensor> weights;  // leaves that collect the gradients
  Losses losses;                    // times their factors
  Batch batch;
  Pass pass;
};

AutogradStage::AutogradStage(const Config& config, const ParameterTable& table, Stream& stream)
    : config_(config.model),
      type_(table.weights().dtype == DType::f64 ? at::kDouble : at::kFloat),
      table_(table),
      stream_(stream),
      device_(stream.device().is_cuda()
                  ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(stream.device().index))
                  : at::Device(at::kCPU)) {}

std::unique_ptr<ActivationSet> AutogradStage::make_activations() {
  return std::make_unique<Graph>();
}

void AutogradStage::forward(const Batch& batch, const Pass& pass, ActivationSet& set) {
  if (pass.dropout.state) throw std::invalid_argument("the reference model cannot be recorded");
  auto& graph = static_cast<Graph&>(set);
  graph.batch = batch;
  graph.pass = pass;
  graph.losses = run(batch, pass.dropout.value, true);
  for (const size_t head : {0UL, 1UL})
    if (graph.losses[head].defined())
      graph.losses[head] = graph.losses[head] * factor(batch, pass, head);
  graph.weights = std::move(weights_);
  finish();
}

void AutogradStage::backward(ActivationSet& set) {
  auto& graph = static_cast<Graph&>(set);
  StepState* state = graph.pass.state;
  stream_.synchronize();  // LibTorch works on a stream of its own
  if (graph.batch.first) {
    stream_.fill_zero(table_.gradients().data, table_.gradients().bytes());
    stream_.synchronize();
  }
  add(graph.losses, state);
  const at::Tensor scale = view(Tensor(&state->loss_scale, DType::f32, {1})).to(type_);
  const auto& [first, second] = graph.losses;
  ((second.defined() ? first + second : first) * scale).sum().backward();
  for (size_t i = 0; i < graph.weights.size(); ++i) {
    const at::Tensor gradient = graph.weights[i].grad();
    if (gradient.defined()) view(table_.get(table_.all()[i].name).gradient).add_(gradient);
  }
  graph.weights.clear();
  graph.losses = {};
  finish();
}

void AutogradStage::evaluate(const Batch& batch, const Pass& pass, ActivationSet&) {
  const at::NoGradGuard no_grad;
  Losses losses = run(batch, 0, false);
  for (at::Tensor& of_head : losses)
    if (of_head.defined()) of_head = of_head * pass.weight;
  add(losses, pass.state);
  weights_.clear();
  finish();
}

AutogradStage::Losses AutogradStage::run(const Batch& batch, uint64_t seed, bool gradients) {
  stream_.synchronize();  // LibTorch works on a stream of its own
  weights_.clear();
  for (const Parameter& p : table_.all()) {
    at::Tensor copy = view(table_.get(p.name).value).to(type_, false, true);
    weights_.push_back(copy.requires_grad_(gradients));
  }
  seed_ = seed;
  return losses_of(batch);
}

// Transformer::loss_factor(), read by the host.
double AutogradStage::factor(const Batch& batch, const Pass& pass, size_t head) const {
  auto counted = static_cast<double>(batch.counted[head]);
  if (pass.counted) {
    stream_.copy(&counted, pass.counted + head, sizeof counted);
    stream_.synchronize();
  } else if (counted < 0) {
    counted = static_cast<double>(batch.labels[head].numel());
  }
  return counted > 0 ? pass.weight / counted : 0;
}

void AutogradStage::add(const Losses& losses, StepState* state) const {
  for (const size_t head : {0UL, 1UL})
    if (losses[head].defined())
      view(Tensor(&state->loss_sums[head], DType::f64, {1})).add_(losses[head].detach());
}

void AutogradStage::finish() const {
  if (device_.is_cuda()) {
    c10::impl::VirtualGuardImpl(at::kCUDA).synchronizeDevice(device_.index());
  }
}

at::TensorOptions AutogradStage::options(at::ScalarType type) const {
  return at::TensorOptions().dtype(type).device(device_);
}

at::Tensor AutogradStage::view(const Tensor& t) const {
  return at::from_blob(t.data, at::IntArrayRef(t.shape.data(), static_cast<size_t>(t.rank)),
                       options(cpu::scalar_type(t.dtype)));
}

at::Tensor AutogradStage::indices(const Tensor& t) const {
  return view(t).to(at::kLong);
}

at::Tensor AutogradStage::linear(const at::Tensor& x, const WeightId& id) const {
  return table_.bias(id).id < 0 ? at::linear(x, w(id)) : at::linear(x, w(id), bias(id));
}

at::Tensor AutogradStage::norm(const at::Tensor& x, const WeightId& id) const {
  if (config_.block.norm == NormKind::rms)
    return x * at::rsqrt(x.pow(2).mean(-1, true) + config_.layernorm_epsilon) * w(id);
  return at::layer_norm(x, {config_.hidden}, w(id), bias(id), config_.layernorm_epsilon);
}

at::Tensor AutogradStage::activation(const at::Tensor& x) const {
  switch (config_.block.mlp) {
    case MlpActivation::gelu_tanh:
      return at::gelu(x, "tanh");
    case MlpActivation::gelu_erf:
      return at::gelu(x, "none");
    case MlpActivation::swiglu:
      return at::silu(x.narrow(-1, 0, config_.ffn)) * x.narrow(-1, config_.ffn, config_.ffn);
  }
  throw std::logic_error("an activation without a reference");
}

at::Tensor AutogradStage::dropout(const at::Tensor& x, double p, uint64_t site) const {
  if (seed_ == 0 || p == 0) return x;
  const at::Tensor mask = at::empty(x.sizes(), at::TensorOptions().dtype(type_).device(at::kCPU));
  dropout_mask(
      p, site_seed(seed_, site),
      Tensor(mask.data_ptr(), type_ == at::kDouble ? DType::f64 : DType::f32, {mask.numel()}));
  return x * mask.to(device_);
}

at::Tensor AutogradStage::cross_entropy(const at::Tensor& logits, const Tensor& labels) const {
  const at::Tensor right = indices(labels).clamp_min(-1).view({-1});
  return at::cross_entropy_loss(logits, right, {}, at::Reduction::Sum, -1);
}

at::Tensor AutogradStage::attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const at::Tensor& hidden, uint64_t site) const {
  const int64_t b = q.size(0), t = q.size(1), h = q.size(2), d = q.size(3);
  at::Tensor scores = at::matmul(q.transpose(1, 2), k.transpose(1, 2).transpose(2, 3)) /
                      std::sqrt(static_cast<double>(d));
  if (hidden.defined())
    scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor p = at::softmax(scores, -1);
  const at::Tensor out = at::matmul(dropout(p, config_.attention_dropout, site), v.transpose(1, 2));
  return out.transpose(1, 2).reshape({b, t, h * d});
}

at::Tensor AutogradStage::apart(const Batch& batch) const {
  const int64_t b = batch.ids.dim(0), t = batch.ids.dim(1);
  const at::Tensor tokens = at::arange(b * t, options(at::kInt));
  const at::Tensor document =
      at::searchsorted(view(batch.cu_seqlens), tokens, false, true).view({b, 1, t});
  return document.unsqueeze(3).ne(document.unsqueeze(2));
}

at::Tensor AutogradStage::positions_of(const Batch& batch) const {
  if (batch.positions.defined()) return indices(batch.positions);
  return at::arange(batch.ids.dim(1), options(at::kLong)).view({1, -1});
}

}  // namespace tally::train
