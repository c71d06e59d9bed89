// The state that the layers of a stage share while a micro batch passes through them.
#pragma once

#include <cstdint>

#include "src/config/config.h"
#include "src/device/compute_options.h"
#include "src/device/side_stream.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"
#include "src/nn/fp8.h"
#include "src/nn/gemm_hook.h"
#include "src/nn/tensor_parallel.h"

namespace tally::train {

// The sites of dropout. Each site of each layer draws its own mask from a micro batch's seed.
// `head`: with the number of layers as its layer.
enum class DropoutSite : uint64_t {
  embedding = 0,
  attention = 1,
  projection = 2,
  mlp = 3,
  head = 4
};

// The arrangement of a micro batch's tokens, as in Batch: B sequences of T tokens. A micro batch
// without padding is one sequence of all its tokens, which cu_seqlens keeps apart.
struct Sequences {
  int64_t batch = 0, tokens = 0;  // B, T: at most as many tokens as the model was made for
  Tensor positions;               // [B,T] i32; undefined: 0 ... T - 1 in each sequence
  Tensor cu_seqlens;              // i32, where documents begin; undefined: a document is a sequence

  int64_t count() const { return batch * tokens; }
};

// One micro batch's dropout. Without dropout both probabilities are 0.
struct Dropout {
  double hidden = 0, attention = 0;
  DropoutSeed seed;
  // This process's number among those that divide attention's heads, and among those that divide
  // the tokens elsewhere. Each process draws masks of its own, as in Megatron-LM.
  uint64_t heads = 0, tokens = 0;

  // The seed of a site. The embedding has none of its own layer: `layer` 0. All processes add up
  // the embedding under the same mask.
  DropoutSeed at(DropoutSite site, int64_t layer = 0) const {
    const uint64_t shard = site == DropoutSite::attention   ? heads
                           : site == DropoutSite::embedding ? 0
                                                            : tokens;
    const uint64_t number =
        static_cast<uint64_t>(site) + 3 * static_cast<uint64_t>(layer) + (shard << 48U);
    return seed.state ? DropoutSeed(seed.state, number)
                      : DropoutSeed(site_seed(seed.value, number));
  }
};

// The gradients that flow from layer to layer in a backward pass; M tokens (with sequence
// parallelism this process's part of them), C hidden.
struct BackwardFlow {
  Tensor residual;  // [M,C] gradient at the residual stream
  Tensor normed;    // [M,C] gradient at a norm's output: what a layer gives to the norm below it
  Tensor branch;    // [M,C] `residual` under the mask of a branch's dropout; undefined without
  Tensor qkv;       // [B,T,H+2G,D] scratch: gradient at Q, K and V
  // The blocks have their norms after the additions (block.h): what a branch reads is also the
  // residual operand of the addition that follows.
  bool post_norm = false;

  // The gradient at the output of a branch that was added to the residual stream.
  const Tensor& at_branch(const Dropout& dropout) const {
    return dropout.hidden > 0 ? branch : residual;
  }
  // Added to the gradient that a branch gives to its input.
  Tensor at_branch_input() const { return post_norm ? residual : Tensor(); }
};

class DeferredUpdate;

struct LayerContext {
  Compute compute;  // on the main stream
  // The micro batch's.
  Sequences sequences;
  Dropout dropout;
  // The deferred update that overlaps with this forward pass; null: none.
  const DeferredUpdate* update = nullptr;
  const Fusions& fusions() const { return compute.options.fusions; }
  SideStream* side = nullptr;
  // Column sums, of which some biases' gradients are made, are kept (Fusions::qkv_bias).
  bool qkv_bias_sums = false;
  Tensor workspace;        // scratch of the operations that ask for some
  Tensor delta;            // [M,C] scratch: a branch's output before it is added
  Fp8Scratch fp8;          // undefined: no layer is in FP8
  bool accumulate = true;  // gradients of matrices are added to; false: overwritten
  TensorParallel tensor;
  GemmHook gemm_hook;
};

}  // namespace tally::train
