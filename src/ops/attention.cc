#include "src/ops/attention.h"

#include "src/ops/dispatch.h"

namespace tally::train {

const char* attention_backend(Stream& s, const AttentionShape& shape, DType dtype) {
  return TALLY_BACKEND(s, attention_backend(s, shape, dtype));
}

size_t attention_workspace(Stream& s, const AttentionShape& shape, DType dtype) {
  return TALLY_BACKEND(s, attention_workspace(s, shape, dtype));
}

void attention_forward(Stream& s, const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                       const Tensor& stats, const Tensor& workspace, DropoutSeed seed) {
  TALLY_BACKEND(s, attention_forward(s, shape, qkv, out, stats, workspace, seed));
}

void attention_backward(Stream& s, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed,
                        const Tensor& q_sums) {
  TALLY_BACKEND(s,
                attention_backward(s, shape, qkv, out, stats, dout, dqkv, workspace, seed, q_sums));
}

void rotary(Stream& s, const Tensor& qkv, double base, double fraction, bool inverse) {
  TALLY_BACKEND(s, rotary(s, qkv, base, fraction, inverse));
}

}  // namespace tally::train
