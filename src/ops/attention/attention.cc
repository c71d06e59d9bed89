#include "src/ops/attention/attention.h"

#include "src/ops/attention/backends.h"
#include "src/ops/dispatch.h"

namespace tally::train {

const char* attention_backend(const Compute& c, const AttentionShape& shape, DType dtype) {
  return TALLY_BACKEND(c.stream, attention_backend(c, shape, dtype));
}

size_t attention_workspace(const Compute& c, const AttentionShape& shape, DType dtype) {
  return TALLY_BACKEND(c.stream, attention_workspace(c, shape, dtype));
}

void attention_forward(const Compute& c, const AttentionShape& shape, const Tensor& qkv,
                       const Tensor& out, const Tensor& stats, const Tensor& workspace,
                       DropoutSeed seed) {
  TALLY_BACKEND(c.stream, attention_forward(c, shape, qkv, out, stats, workspace, seed));
}

void attention_backward(const Compute& c, const AttentionShape& shape, const Tensor& qkv,
                        const Tensor& out, const Tensor& stats, const Tensor& dout,
                        const Tensor& dqkv, const Tensor& workspace, DropoutSeed seed,
                        const Tensor& q_sums) {
  TALLY_BACKEND(c.stream,
                attention_backward(c, shape, qkv, out, stats, dout, dqkv, workspace, seed, q_sums));
}

void rotary(Stream& s, const Tensor& qkv, const Tensor& positions, double base, double fraction,
            bool inverse) {
  TALLY_BACKEND(s, rotary(s, qkv, positions, base, fraction, inverse));
}

}  // namespace tally::train
