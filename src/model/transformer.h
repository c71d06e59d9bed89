// The part that the explicit models share: a stack of transformer blocks (nn/block.h) between what
// is below them (embeddings) and above them (heads), which each model adds.
//   r_0 = below(batch);  blocks;  loss = above(norm(r_L))
// Stages of a pipeline meet at the residual stream between two blocks.
#pragma once

#include <memory>
#include <vector>

#include "src/device/arena.h"
#include "src/model/stage.h"
#include "src/nn/block.h"

namespace tally::train {

// The sizes of a part's blocks.
BlockSizes block_sizes(const Config& config, const ModelPart& part, DType type);
// f32, or f64 for f64: the type of statistics and losses.
DType wide_type(DType type);

class Transformer : public Stage {
 public:
  std::unique_ptr<ActivationSet> make_activations() override;
  void forward(const Batch& batch, const Pass& pass, ActivationSet& set) override;
  void backward(ActivationSet& set) override;
  void evaluate(const Batch& batch, const Pass& pass, ActivationSet& set) override;
  size_t scratch_bytes() const override { return arena_.bytes(); }
  void set_gemm_hook(const GemmHook& hook) override { context_.gemm_hook = hook; }
  std::vector<Tensor> exchanged() const override;
  std::vector<int> reported_parameters() const override;
  // Covers all matrices of the blocks from the second block's attention projection on, and what
  // lies behind the blocks.
  DeferredUpdate* deferred_update() override { return update_ ? update_.get() : nullptr; }

 protected:
  // The state of a micro batch.
  struct Activations final : ActivationSet {
    explicit Activations(Stream& stream) : arena(stream) {}
    size_t bytes() const override { return arena.bytes(); }

    Arena arena;
    std::vector<BlockActivations> reserved;
    NormActivations reserved_final;
    // The micro batch that the set holds: `reserved`, or its first tokens.
    Batch batch;
    Pass pass;
    Sequences sequences;
    std::vector<BlockActivations> blocks;
    NormActivations final;
  };

  // A derived class's constructor calls reserve_scratch(), then bind_blocks(). `documents`: whether
  // cu_seqlens keeps tokens apart.
  Transformer(const Config& config, const ModelPart& part, const ParameterTable& table,
              Stream& stream, Communicator* tensor, const BlockSizes& sizes, bool documents);
  // Reserves what micro batches share. Returns memory of at least `head_elements` elements that
  // what is above the blocks may use while no block runs.
  Tensor reserve_scratch(int64_t head_elements);
  void bind_blocks(const ParameterTable& table);

  // Throws std::invalid_argument where the model was not made for the batch.
  virtual void check(const Batch& batch) const = 0;
  virtual Sequences sequences_of(const Batch& batch) const;
  // Clears the gradients outside of the blocks that are added to, but for biases and norms.
  virtual void clear_gradients() = 0;
  // Writes r[M,C], the first block's input before its norm. Dropout is context_'s, here and below.
  virtual void embed(const Activations& a, const Tensor& r) = 0;
  virtual void backward_embedding(const Activations& a, const Tensor& dr) = 0;
  // Adds the loss of y = a.final.y. y is scratch afterwards.
  virtual void evaluate_head(const Activations& a) = 0;
  // The same, and writes the gradient at y to dy[M,C].
  virtual void backward_head(const Activations& a, const Tensor& dy) = 0;

  // The factor of a head's losses, of which the micro batch has `labels`.
  static LossFactor loss_factor(const Activations& a, size_t head, int64_t labels);

  const ModelConfig config_;
  const Fp8Config fp8_;
  const ModelPart part_;
  const bool documents_;
  const DType type_;
  const BlockSizes sizes_;
  LayerContext context_;
  Arena arena_;
  std::vector<Block> blocks_;

 private:
  bool gathers_casts() const;
  void reserve_fp8();
  void bind_vectors(const ParameterTable& table);
  void bind_update(const ParameterTable& table);
  Dropout dropout_of(const Pass& pass) const;
  BackwardFlow flow_of(const Activations& a) const;
  void take(const Batch& batch, const Pass& pass, Activations* a) const;
  void enter(const Activations& a, const Dropout& dropout, const DeferredUpdate* update);
  void start_gradients(bool first);
  void run_blocks(Activations& a);
  void embed_through(const Activations& a, const Tensor& r);
  NormedSum out_of(size_t block, const Activations& a) const;
  void weights_are_needed(const Block& block) const;
  void gradients_are_final(const Block& block) const;
  void backward_blocks(Activations& a, const BackwardFlow& flow);

  const int update_sms_;
  const bool updates_, saves_derivative_;
  std::unique_ptr<SideStream> side_;
  std::unique_ptr<DeferredUpdate> update_;
  Norm final_norm_;
  std::vector<Tensor> vector_gradients_;  // gradients of biases and norms, flat

  // Scratch that the sets share. Some of it has two uses that do not overlap.
  BlockActivations shared_;
  // The set whose forward pass was called last. While there is only one set, its last block's
  // shared activations and the last norm's output are still valid. With several sets, recorded
  // passes of others may have run since.
  const Activations* latest_ = nullptr;
  int sets_ = 0;
  bool is_latest(const Activations& a) const { return sets_ == 1 && latest_ == &a; }
  // Forward: `residual` is the last norm's output, `normed` LayerContext::delta. `qkv` is the
  // memory that reserve_scratch() returns.
  BackwardFlow flow_;
  Tensor projection_sums_;  // [layers,C], see Projection
};

}  // namespace tally::train
