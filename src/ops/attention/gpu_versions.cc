#include "src/ops/attention/gpu_versions.h"

#include <algorithm>

namespace tally::train {
namespace {

constexpr size_t tile_memory = size_t{256} << 20;   // for flash's blocks of dS of the heads in work
constexpr size_t score_memory = size_t{256} << 20;  // for unfused attention's scores
constexpr int64_t most_blocks = 65535;              // flash attention's, in one grid
constexpr int64_t most_elements = INT32_MAX;  // qkv's, whose rows and blocks are numbered by int

size_t row_values(const AttentionShape& a) {
  return static_cast<size_t>(a.batch * a.heads * a.tokens);
}

bool is_16_bits(DType t) {
  return t == DType::bf16 || t == DType::f16;
}

size_t tile_bytes_a_head(const AttentionShape& a) {
  const int64_t n = (a.tokens + flash_key_block - 1) / flash_key_block;
  const int64_t tiles = a.causal() ? n * (n + 1) / 2 : n * n;
  return static_cast<size_t>(tiles * flash_key_block * flash_key_block) * sizeof(float);
}

// Bytes of one head's matrices: scores and their gradient, and both again for 16-bit types.
size_t score_bytes_a_head(const AttentionShape& a, DType t) {
  const size_t wide = size_of(t == DType::f64 ? DType::f64 : DType::f32);
  const size_t own = size_of(t) == 2 ? 2 * size_of(t) : 0;
  return static_cast<size_t>(a.tokens * a.tokens) * (2 * wide + own);
}

}  // namespace

bool hopper_attention_fits(const ComputeOptions& o, const AttentionShape& a, DType dtype,
                           int capability) {
  const int64_t rows = a.batch * a.tokens;
  return o.fusions.attention && !o.deterministic && capability == 90 && is_16_bits(dtype) &&
         (a.head_dim == hopper_head_dim || a.head_dim == hopper_wide_head_dim) && a.dropout < 1 &&
         static_cast<float>(a.scale) > 0 && rows > 0 && a.heads > 0 &&
         a.tokens % hopper_block_rows == 0 && rows * a.row() <= most_elements;
}

// Measured: bench/notes/attention.md, "heads of 128".
bool cudnn_is_faster_backward(const AttentionShape& a) {
  constexpr int64_t long_sequence = 4096;
  return a.head_dim == hopper_wide_head_dim && a.dropout == 0 &&
         (a.grouped() || a.tokens > long_sequence);
}

bool short_attention_fits(const ComputeOptions& o, const AttentionShape& a, DType dtype,
                          int capability) {
  const int64_t rows = a.batch * a.tokens;
  const bool is_short =
      a.documents ? a.most_documents > 0 && a.longest > 0 && a.longest <= hopper_block_rows
                  : a.tokens <= hopper_block_rows && a.tokens % 8 == 0;
  return o.fusions.attention && capability == 90 && is_16_bits(dtype) && is_short &&
         a.head_dim == hopper_head_dim && !a.causal() && !a.grouped() && a.dropout < 1 &&
         static_cast<float>(a.scale) > 0 && rows > 0 && a.heads > 0 &&
         std::max(a.batch, a.most_documents) * a.heads <= most_elements &&
         rows * a.heads * 3 * hopper_head_dim <= most_elements;
}

bool flash_attention_fits(const AttentionShape& a, DType dtype) {
  return dtype == DType::f32 && !a.grouped() && a.head_dim <= 128 &&
         a.tokens <= most_blocks * flash_key_block && a.batch * a.heads <= most_elements;
}

size_t hopper_attention_bytes(const AttentionShape& a) {
  constexpr size_t counter = 256;
  return row_values(a) * static_cast<size_t>(a.head_dim + 2) * sizeof(float) + counter;
}

size_t flash_delta_bytes(const AttentionShape& a) {
  return (row_values(a) * sizeof(float) + 255) / 256 * 256;
}

int64_t flash_heads_at_once(const AttentionShape& a) {
  const auto fit = static_cast<int64_t>(tile_memory / std::max<size_t>(tile_bytes_a_head(a), 1));
  return std::clamp<int64_t>(fit, 1, std::max<int64_t>(a.batch * a.heads, 1));
}

size_t flash_attention_bytes(const AttentionShape& a) {
  return flash_delta_bytes(a) + static_cast<size_t>(flash_heads_at_once(a)) * tile_bytes_a_head(a);
}

UnfusedChunks::UnfusedChunks(const AttentionShape& a, DType t)
    : over_batch(a.batch > a.heads || a.grouped()) {
  loop = over_batch ? a.heads : a.batch;
  across = over_batch ? a.batch : a.heads;
  const auto fit =
      static_cast<int64_t>(score_memory / std::max<size_t>(score_bytes_a_head(a, t), 1));
  piece = std::clamp<int64_t>(fit, 1, across);
}

size_t unfused_attention_bytes(const AttentionShape& a, DType t) {
  const UnfusedChunks chunks(a, t);
  return static_cast<size_t>(chunks.piece) * score_bytes_a_head(a, t) + 1024;
}

int64_t cudnn_document_bytes(const AttentionShape& a) {
  const int64_t n = a.most_documents;
  const int64_t bytes = 3 * (n + 1) * int64_t{sizeof(int64_t)} + n * int64_t{sizeof(int32_t)};
  return (bytes + 255) / 256 * 256;
}

size_t cudnn_attention_estimate(const AttentionShape& a, DType dtype) {
  const size_t rows = static_cast<size_t>(a.documents ? a.most_documents * a.longest * a.heads
                                                      : a.batch * a.tokens * a.heads);
  const auto d = static_cast<size_t>(a.head_dim);
  const size_t groups = a.grouped() ? 2 * rows * d * size_of(dtype) : 0;
  const auto head =
      static_cast<size_t>(cudnn_seed_bytes + (a.documents ? cudnn_document_bytes(a) : 0));
  return head + rows * (d + 2) * sizeof(float) + groups;
}

}  // namespace tally::train
