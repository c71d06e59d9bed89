// GPT as a plain autograd program over the same parameters: the oracle of the explicit model. It
// computes in float32 (float64 for float64) whatever the compute type, from the weights in their
// compute type.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/triu.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>

#include "src/device/convert.h"
#include "src/device/cpu/aten_views.h"
#include "src/device/philox.h"
#include "src/model/stage.h"

namespace tally::train {
namespace {

// Autograd's graph of one micro batch. Its memory is not planned.
struct Graph final : ActivationSet {
  size_t bytes() const override { return 0; }

  std::map<std::string, at::Tensor> weights;  // leaves that collect the gradients
  at::Tensor loss;                            // weighted
  Batch batch;
  Pass pass;
};

class ReferenceGpt final : public Stage {
 public:
  ReferenceGpt(const Config& config, const ParameterTable& table, Stream& stream)
      : config_(config.model),
        table_(table),
        stream_(stream),
        device_(stream.device().is_cuda()
                    ? at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(stream.device().index))
                    : at::Device(at::kCPU)),
        type_(table.weights().dtype == DType::f64 ? at::kDouble : at::kFloat) {}

  std::unique_ptr<ActivationSet> make_activations() override { return std::make_unique<Graph>(); }

  void forward(const Batch& batch, const Pass& pass, ActivationSet& set) override {
    if (pass.dropout.state) throw std::invalid_argument("the reference model cannot be recorded");
    auto& graph = static_cast<Graph&>(set);
    graph.batch = batch;
    graph.pass = pass;
    graph.loss = loss_of(batch, pass.weight, pass.dropout.value, true);
    graph.weights = std::move(weights_);
    finish();
  }

  void backward(ActivationSet& set) override {
    auto& graph = static_cast<Graph&>(set);
    StepState* state = graph.pass.state;
    stream_.synchronize();  // LibTorch works on a stream of its own
    if (graph.batch.first) {
      stream_.fill_zero(table_.gradients().data, table_.gradients().bytes());
      stream_.synchronize();
    }
    view(Tensor(&state->loss_sum, DType::f64, {1})).add_(graph.loss.detach());
    const at::Tensor scale = view(Tensor(&state->loss_scale, DType::f32, {1})).to(type_);
    (graph.loss * scale).sum().backward();
    for (const Parameter& p : table_.all()) {
      const at::Tensor gradient = graph.weights.at(p.name).grad();
      if (gradient.defined()) view(table_.get(p.name).gradient).add_(gradient);
    }
    graph.weights.clear();
    graph.loss = at::Tensor();
    finish();
  }

  void evaluate(const Batch& batch, const Pass& pass, ActivationSet&) override {
    const at::NoGradGuard no_grad;
    const at::Tensor loss = loss_of(batch, pass.weight, 0, false);
    view(Tensor(&pass.state->loss_sum, DType::f64, {1})).add_(loss);
    weights_.clear();
    finish();
  }

  size_t scratch_bytes() const override { return 0; }

 private:
  at::Tensor view(const Tensor& t) const {
    return at::from_blob(t.data, at::IntArrayRef(t.shape.data(), static_cast<size_t>(t.rank)),
                         at::TensorOptions().dtype(cpu::scalar_type(t.dtype)).device(device_));
  }

  at::Tensor loss_of(const Batch& batch, double weight, uint64_t seed, bool gradients) {
    stream_.synchronize();  // LibTorch works on a stream of its own
    weights_.clear();
    for (const Parameter& p : table_.all()) {
      at::Tensor copy = view(table_.get(p.name).value).to(type_, false, true);
      weights_[p.name] = copy.requires_grad_(gradients);
    }
    seed_ = seed;
    const int64_t counted = batch.counted < 0 ? batch.ids.numel() : batch.counted;
    const at::Tensor logits = logits_of(batch);
    const at::Tensor labels = view(batch.labels[0]).to(at::kLong).clamp_min(-1).view({-1});
    return at::cross_entropy_loss(
               logits.view({-1, config_.padded_vocabulary}).narrow(1, 0, config_.vocabulary),
               labels, {}, at::Reduction::Sum, -1) *
           (counted > 0 ? weight / static_cast<double>(counted) : 0.0);
  }

  void finish() {
    if (device_.is_cuda()) {
      c10::impl::VirtualGuardImpl(at::kCUDA).synchronizeDevice(device_.index());
    }
  }

  at::Tensor w(const std::string& name) const { return weights_.at(name); }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return at::linear(x, w(name + ".weight"), w(name + ".bias"));
  }
  at::Tensor norm(const at::Tensor& x, const std::string& name) const {
    return at::layer_norm(x, {config_.hidden}, w(name + ".weight"), w(name + ".bias"),
                          config_.layernorm_epsilon);
  }

  // The explicit model's dropout masks, so that the two can be compared. Sites are numbered the
  // same.
  at::Tensor dropout(const at::Tensor& x, double p, uint64_t site) const {
    if (seed_ == 0 || p == 0) return x;
    const at::Tensor mask = at::empty(x.sizes(), at::TensorOptions().dtype(type_).device(at::kCPU));
    dropout_mask(
        p, site_seed(seed_, site),
        Tensor(mask.data_ptr(), type_ == at::kDouble ? DType::f64 : DType::f32, {mask.numel()}));
    return x * mask.to(device_);
  }

  // [B or 1, T] of a batch, as a table's rows.
  at::Tensor positions_of(const Batch& batch) const {
    if (batch.positions.defined()) return view(batch.positions).to(at::kLong);
    return at::arange(batch.ids.dim(1), at::TensorOptions().dtype(at::kLong).device(device_))
        .view({1, -1});
  }

  // x[B,T,H,D]; angles in float64.
  at::Tensor rotate(const at::Tensor& x, const at::Tensor& positions) const {
    const int64_t half =
        static_cast<int64_t>(static_cast<double>(x.size(3)) * config_.rotary_fraction) / 2;
    const auto real = at::TensorOptions().dtype(at::kDouble).device(device_);
    const at::Tensor rates =
        at::pow(config_.rotary_base, at::arange(half, real) / static_cast<double>(-half));
    const at::Tensor angles =
        positions.to(at::kDouble).unsqueeze(2).mul(rates).unsqueeze(2);  // [B or 1, T, 1, half]
    const at::Tensor c = at::cos(angles).to(type_), s = at::sin(angles).to(type_);
    const at::Tensor a = x.narrow(3, 0, half), b = x.narrow(3, half, half);
    const at::Tensor rest = x.narrow(3, 2 * half, x.size(3) - 2 * half);
    return at::cat({a * c - b * s, b * c + a * s, rest}, 3);
  }

  // [T,T] or, with documents, [B,1,T,T]: true where a row's token does not see a column's.
  at::Tensor hidden(const Batch& batch) const {
    const int64_t b = batch.ids.dim(0), t = batch.ids.dim(1);
    // Not const: it is moved from where it is returned.
    at::Tensor future =
        at::ones({t, t}, at::TensorOptions().dtype(at::kBool).device(device_)).triu(1);
    if (!batch.cu_seqlens.defined()) return future;
    const at::Tensor tokens =
        at::arange(b * t, at::TensorOptions().dtype(at::kInt).device(device_));
    const at::Tensor document =
        at::searchsorted(view(batch.cu_seqlens), tokens, false, true).view({b, 1, t});
    return future.logical_or(document.unsqueeze(3).ne(document.unsqueeze(2)));
  }

  at::Tensor attention(const at::Tensor& x, const Batch& batch, const std::string& name,
                       uint64_t site) const {
    const int64_t b = x.size(0), t = x.size(1), h = config_.heads, d = config_.head_dim();
    const at::Tensor qkv = linear(x, name + ".c_attn").view({b, t, 3, h, d});
    at::Tensor q = qkv.select(2, 0), k = qkv.select(2, 1);
    const at::Tensor v = qkv.select(2, 2).transpose(1, 2);
    if (config_.positions == Positions::rotary) {
      q = rotate(q, positions_of(batch));
      k = rotate(k, positions_of(batch));
    }
    const at::Tensor scores = at::matmul(q.transpose(1, 2), k.transpose(1, 2).transpose(2, 3)) /
                              std::sqrt(static_cast<double>(d));
    const at::Tensor p = at::softmax(
        scores.masked_fill(hidden(batch), -std::numeric_limits<double>::infinity()), -1);
    const at::Tensor out = at::matmul(dropout(p, config_.attention_dropout, site), v);
    return linear(out.transpose(1, 2).reshape({b, t, h * d}), name + ".c_proj");
  }

  at::Tensor logits_of(const Batch& batch) const {
    at::Tensor x = at::embedding(w("wte.weight"), view(batch.ids).to(at::kLong));
    if (config_.positions == Positions::learned) {
      x = x + at::embedding(w("wpe.weight"), positions_of(batch));
    }
    x = dropout(x, config_.hidden_dropout, 0);
    for (int64_t l = 0; l < config_.layers; ++l) {
      const std::string h = "h." + std::to_string(l) + ".";
      const uint64_t site = 3 * static_cast<uint64_t>(l) + 1;
      x = x + dropout(attention(norm(x, h + "ln_1"), batch, h + "attn", site),
                      config_.hidden_dropout, site + 1);
      const at::Tensor up = at::gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc"), "tanh");
      x = x + dropout(linear(up, h + "mlp.c_proj"), config_.hidden_dropout, site + 2);
    }
    return at::matmul(norm(x, "ln_f"),
                      w(config_.tied_embeddings ? "wte.weight" : "lm_head.weight").t());
  }

  const ModelConfig config_;
  const ParameterTable& table_;
  Stream& stream_;
  const at::Device device_;
  const at::ScalarType type_;
  std::map<std::string, at::Tensor> weights_;
  uint64_t seed_ = 0;
};

}  // namespace

std::unique_ptr<Stage> make_reference_gpt(const Config& config, const ParameterTable& table,
                                          const Compute& compute) {
  return std::make_unique<ReferenceGpt>(config, table, compute.stream);
}

}  // namespace tally::train
