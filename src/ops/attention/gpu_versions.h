// The version of attention that serves a shape on a GPU, and its scratch. Both cuda.cc and the
// counting device ask here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/attention/attention.h"

namespace tally::train {

enum class AttentionVersion : uint8_t { hopper_short, hopper, cudnn, flash, unfused };

// The first that serves, in the order of attention.h. `serves(version)` is asked for all but
// unfused.
template <typename Serves>
AttentionVersion choose_attention(const AttentionShape& shape, DType dtype, const Serves& serves) {
  if (!shape.packed) return AttentionVersion::unfused;
  if (serves(AttentionVersion::hopper_short)) return AttentionVersion::hopper_short;
  if (!shape.documents && serves(AttentionVersion::hopper)) return AttentionVersion::hopper;
  if (size_of(dtype) == 2 && serves(AttentionVersion::cudnn)) return AttentionVersion::cudnn;
  if (!shape.documents && serves(AttentionVersion::flash)) return AttentionVersion::flash;
  return AttentionVersion::unfused;
}

// The backward pass's version. With dropout it is the forward pass's, whose mask it draws. Without,
// `hopper` and `cudnn` keep the same statistics, and the faster one is taken.
bool cudnn_is_faster_backward(const AttentionShape& shape);  // than `hopper`
template <typename Serves>
AttentionVersion choose_backward(const AttentionShape& shape, AttentionVersion forward,
                                 const Serves& serves) {
  const bool other = forward == AttentionVersion::hopper && cudnn_is_faster_backward(shape) &&
                     serves(AttentionVersion::cudnn);
  return other ? AttentionVersion::cudnn : forward;
}

// hopper_attention_serves() and short_attention_serves() on compute capability `capability`, but
// for what the build and the driver lack.
bool hopper_attention_fits(const ComputeOptions& options, const AttentionShape& shape, DType dtype,
                           int capability);
bool short_attention_fits(const ComputeOptions& options, const AttentionShape& shape, DType dtype,
                          int capability);
// flash_attention_serves(), but for a block's shared memory.
bool flash_attention_fits(const AttentionShape& shape, DType dtype);

inline constexpr int64_t hopper_head_dim = 64, hopper_wide_head_dim = 128, hopper_block_rows = 128;
size_t hopper_attention_bytes(const AttentionShape& shape);

// f32: delta, and the blocks of dS of the heads in work.
inline constexpr int64_t flash_key_block = 64;
size_t flash_delta_bytes(const AttentionShape& shape);
// Heads whose blocks of dS fit the memory for them; at least one.
int64_t flash_heads_at_once(const AttentionShape& shape);
size_t flash_attention_bytes(const AttentionShape& shape);

// A GEMM is batched over all heads of one position in the batch, or over the batch for one head,
// whichever is more, in pieces that fit the memory for scores.
struct UnfusedChunks {
  int64_t loop, across, piece;  // loop * across heads in all
  bool over_batch;
  // A batched GEMM cannot add up what the heads of a group have of dK and dV: they take turns.
  UnfusedChunks(const AttentionShape& shape, DType dtype);
};
size_t unfused_attention_bytes(const AttentionShape& shape, DType dtype);

// The bytes before cuDNN's own scratch: the seed, and the table of documents.
inline constexpr int64_t cudnn_seed_bytes = 256;
int64_t cudnn_document_bytes(const AttentionShape& shape);  // a multiple of 256
// An estimate of all of its scratch, which only cuDNN knows: it sums dQ in float32, as our kernel
// for Hopper does, and with query groups it has the gradients of K and V of each head of Q before
// it adds them up.
size_t cudnn_attention_estimate(const AttentionShape& shape, DType dtype);

}  // namespace tally::train
