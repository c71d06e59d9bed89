// The part that the autograd models share: a plain autograd program over the explicit model's
// parameters. It computes in float32 (float64 for float64) whatever the compute type, from the
// weights in their compute type.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <vector>

#include "src/model/stage.h"

namespace tally::train {

class AutogradStage : public Stage {
 public:
  AutogradStage(const Config& config, const ParameterTable& table, Stream& stream);

  std::unique_ptr<ActivationSet> make_activations() override;
  void forward(const Batch& batch, const Pass& pass, ActivationSet& set) override;
  void backward(ActivationSet& set) override;
  void evaluate(const Batch& batch, const Pass& pass, ActivationSet& set) override;
  size_t scratch_bytes() const override { return 0; }

 protected:
  // The losses of each head, added up over its labels that count; undefined: no such head.
  using Losses = std::array<at::Tensor, 2>;
  virtual Losses losses_of(const Batch& batch) = 0;

  at::Tensor view(const Tensor& t) const;     // the same memory
  at::Tensor indices(const Tensor& t) const;  // converted to int64
  at::Tensor w(const WeightId& id) const { return weights_.at(index_of(table_.weight(id))); }
  at::Tensor bias(const WeightId& id) const { return weights_.at(index_of(table_.bias(id))); }
  // The layer has a bias where the model has one.
  at::Tensor linear(const at::Tensor& x, const WeightId& id) const;
  at::Tensor norm(const at::Tensor& x, const WeightId& id) const;
  // The blocks' activation, of [..., fc_width] columns.
  at::Tensor activation(const at::Tensor& x) const;
  // The explicit model's dropout masks, so that the two can be compared. Sites are numbered the
  // same.
  at::Tensor dropout(const at::Tensor& x, double p, uint64_t site) const;
  // The sum of the cross-entropies; a negative label does not count.
  at::Tensor cross_entropy(const at::Tensor& logits, const Tensor& labels) const;
  // Softmax attention of q, k and v [B,T,H,D] to the output before its projection. `hidden`: true
  // where a query does not see a key; undefined: it sees all.
  at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const at::Tensor& hidden, uint64_t site) const;
  // [B,1,T,T]: true where two tokens are in different documents.
  at::Tensor apart(const Batch& batch) const;
  // [B or 1, T] of a batch, as a table's rows.
  at::Tensor positions_of(const Batch& batch) const;
  at::TensorOptions options(at::ScalarType type) const;

  const ModelConfig config_;
  const at::ScalarType type_;

 private:
  struct Graph;
  Losses run(const Batch& batch, uint64_t seed, bool gradients);
  double factor(const Batch& batch, const Pass& pass, size_t head) const;
  void add(const Losses& losses, StepState* state) const;
  void finish() const;
  static size_t index_of(const ParamGrad& p) { return static_cast<size_t>(p.id); }

  const ParameterTable& table_;
  Stream& stream_;
  const at::Device device_;
  std::vector<at::Tensor> weights_;  // in the order of the table
  uint64_t seed_ = 0;
};

}  // namespace tally::train
