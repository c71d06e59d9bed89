// The explicit GPT, or a part of it as a stage of a pipeline:
//   r_0 = embeddings;  pre-norm blocks;  loss = cross entropy(ln_f(r_L) W_head^T)
#pragma once

#include <memory>

#include "src/model/transformer.h"
#include "src/nn/embedding.h"
#include "src/nn/lm_head.h"

namespace tally::train {

class Gpt final : public Transformer {
 public:
  // Throws std::invalid_argument when the sequence is longer than the model has positions, and
  // OutOfMemory.
  Gpt(const Config& config, const ModelPart& part, const ParameterTable& table, Stream& stream,
      Communicator* tensor);

 private:
  void reserve();
  void bind(const ParameterTable& table);
  void check(const Batch& batch) const override;
  void clear_gradients() override;
  void embed(const Activations& a, const Tensor& r) override;
  void backward_embedding(const Activations& a, const Tensor& dr) override;
  void evaluate_head(const Activations& a) override;
  void backward_head(const Activations& a, const Tensor& dy) override;
  LossFactor factor(const Activations& a) const;
  Tensor labels(const Activations& a) const;

  Embedding embedding_;
  LmHead head_;
  HeadScratch head_scratch_;
};

}  // namespace tally::train
