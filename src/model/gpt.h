// The explicit GPT, or a part of it as a stage of a pipeline:
//   r_0 = embeddings;  blocks (nn/block.h);  loss = cross entropy(ln_f(r_L) W_head^T)
// Stages meet at the residual stream between two blocks.
#pragma once

#include <memory>
#include <vector>

#include "src/device/arena.h"
#include "src/model/stage.h"
#include "src/nn/block.h"
#include "src/nn/embedding.h"
#include "src/nn/lm_head.h"

namespace tally::train {

class Gpt final : public Stage {
 public:
  // Throws std::invalid_argument when the sequence is longer than the model has positions, and
  // OutOfMemory.
  Gpt(const Config& config, const ModelPart& part, const ParameterTable& table,
      const Compute& compute, Communicator* tensor);

  std::unique_ptr<ActivationSet> make_activations() override;
  void forward(const Batch& batch, const Pass& pass, ActivationSet& set) override;
  void backward(ActivationSet& set) override;
  void evaluate(const Batch& batch, const Pass& pass, ActivationSet& set) override;
  size_t scratch_bytes() const override { return arena_.bytes(); }
  std::vector<int> reported_parameters() const override;
  // Covers all matrices of the blocks from the second block's attention projection on.
  DeferredUpdate* deferred_update() override { return update_ ? update_.get() : nullptr; }

 private:
  struct Activations;

  void bind(const ParameterTable& table, SavedGelu form);
  void bind_vectors(const ParameterTable& table);
  void bind_update(const ParameterTable& table, int sms);
  void plan_scratch();
  void check(const Batch& batch) const;
  Dropout dropout_of(const Pass& pass) const;
  LossFactor loss_factor(const Batch& batch, const Pass& pass) const;
  void start_gradients(bool first);
  void run_blocks(Activations& a, const Dropout& dropout, bool updates);
  void end_blocks(Activations& a, const Dropout& dropout);
  void backward_head(Activations& a, const Dropout& dropout, const BackwardFlow& flow);
  void backward_blocks(Activations& a, const Dropout& dropout, const BackwardFlow& flow);

  const ModelConfig config_;
  const ModelPart part_;
  const bool documents_;  // within a sequence, which attention keeps apart
  const DType type_;
  BlockSizes sizes_;
  LayerContext context_;
  Arena arena_;
  std::unique_ptr<SideStream> side_;
  std::unique_ptr<DeferredUpdate> update_;

  Embedding embedding_;
  std::vector<Block> blocks_;
  ResidualNorm final_norm_;
  LmHead head_;
  std::vector<Tensor> vector_gradients_;  // those of biases and norms, flat

  // Scratch that the sets share. Some of it has two uses that do not overlap.
  BlockActivations shared_;
  // The set whose forward pass ran last: its last block's shared activations and the last norm's
  // output are still valid.
  const Activations* latest_ = nullptr;
  BackwardFlow flow_;  // forward: `residual` is the last norm's output, `normed` a branch's output
  Tensor qkv_grad_;    // [B,T,3,H,D]; the same memory as the logits
  HeadScratch head_scratch_;
  Tensor projection_sums_;  // [layers,C], see SelfAttention
};

}  // namespace tally::train
