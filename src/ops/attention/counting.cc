// attention.h on the counting device.
#include <algorithm>

#include "src/ops/attention/gpu_versions.h"
#include "src/ops/counting.h"

namespace tally::train::counting {
namespace {

bool serves(AttentionVersion version, const Compute& c, const AttentionShape& shape, DType dtype) {
  const int capability = counting_stream(c.stream).counted().capability;
  switch (version) {
    case AttentionVersion::hopper_short:
      return short_attention_fits(c.options, shape, dtype, capability);
    case AttentionVersion::hopper:
      return hopper_attention_fits(c.options, shape, dtype, capability);
    case AttentionVersion::cudnn:
      return capability >= 80 &&
             (!shape.documents || (shape.most_documents > 0 && shape.longest > 0));
    case AttentionVersion::flash:
      return capability >= 80 && flash_attention_fits(shape, dtype);
    case AttentionVersion::unfused:
      break;
  }
  return true;
}

AttentionVersion version(const Compute& c, const AttentionShape& shape, DType dtype) {
  return choose_attention(shape, dtype,
                          [&](AttentionVersion v) { return serves(v, c, shape, dtype); });
}
AttentionVersion backward_version(const Compute& c, const AttentionShape& shape, DType dtype) {
  return choose_backward(shape, version(c, shape, dtype),
                         [&](AttentionVersion v) { return serves(v, c, shape, dtype); });
}

const char* backend(const Compute&, const AttentionShape&, DType) {
  return "counted";
}

size_t workspace_of(AttentionVersion version, const AttentionShape& shape, DType dtype) {
  switch (version) {
    case AttentionVersion::hopper_short:
      return 0;
    case AttentionVersion::hopper:
      return hopper_attention_bytes(shape);
    case AttentionVersion::cudnn:
      return cudnn_attention_estimate(shape, dtype);
    case AttentionVersion::flash:
      return flash_attention_bytes(shape);
    case AttentionVersion::unfused:
      break;
  }
  return unfused_attention_bytes(shape, dtype);
}

size_t workspace(const Compute& c, const AttentionShape& shape, DType dtype) {
  if (!counting_stream(c.stream).counted().gpu) return 0;
  return std::max(workspace_of(version(c, shape, dtype), shape, dtype),
                  workspace_of(backward_version(c, shape, dtype), shape, dtype));
}

// Two GEMMs over the scores that the mask leaves: half of them under a causal one.
double flops_of(const AttentionShape& a) {
  const int64_t keys = a.documents && a.longest > 0 ? a.longest : a.tokens;
  const double scores = real(a.batch) * real(a.heads) * real(a.tokens) * real(keys);
  return 4 * scores * real(a.head_dim) / (a.causal() ? 2 : 1);
}

// The unfused version's GEMMs have scratch of their own.
void need_scratch_of_unfused(const Compute& c, const AttentionArgs& args) {
  const AttentionShape& a = args.shape;
  if (!counting_stream(c.stream).counted().gpu ||
      version(c, a, args.dtype) != AttentionVersion::unfused)
    return;
  const int64_t piece = UnfusedChunks(a, args.dtype).piece;
  need_scratch(c, args.dtype,
               {.rows = a.tokens, .cols = a.head_dim, .inner = a.tokens, .batch = piece});
}

void forward(const Compute& c, const AttentionArgs& args) {
  need_scratch_of_unfused(c, args);
  counting_stream(c.stream).count({.attention = flops_of(args.shape)});
}

// 5 GEMMs for the 2 of the forward pass (Dao et al. 2022, arXiv:2205.14135, appendix B).
void backward(const Compute& c, const AttentionArgs& args, const AttentionGradients&) {
  need_scratch_of_unfused(c, args);
  counting_stream(c.stream).count({.attention = 2.5 * flops_of(args.shape)});
}

// Q and K are read and written.
void rotate(Stream& s, Out qkv, const RotaryPositions& positions, bool) {
  const int64_t rotated = qkv.dim(2) - positions.kv_heads;
  counting_stream(s).count({.moved = 2 * bytes_of(qkv) * real(rotated) / real(qkv.dim(2))});
}

const OnCounting versions[] = {{attention_backend, backend},
                               {attention_workspace, workspace},
                               {attention_forward, forward},
                               {attention_backward, backward},
                               {rotary_embedding, rotate}};

}  // namespace
}  // namespace tally::train::counting
