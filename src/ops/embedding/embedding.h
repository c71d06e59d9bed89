// Token and position embeddings.
//   ids[B,T] i32, positions[B,T] i32 (undefined: 0 ... T - 1 in each row), wte[V,C], wpe[P,C]
//   (undefined with rotary positions), out[B,T,C]
// CPU: cpu.cc; GPUs: cuda.cu, every type.
#pragma once

#include "src/device/step_state.h"
#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

// out = dropout(wte[ids] + wpe[positions])
void embedding_forward(Stream& s, const Tensor& ids, const Tensor& positions, const Tensor& wte,
                       const Tensor& wpe, double dropout, DropoutSeed seed, const Tensor& out);
// dwte[ids] += dout, dwpe[positions] += dout (gradient type), under dropout's mask. The order of
// additions is fixed, so that results repeat bit for bit. `workspace`: embedding_workspace() bytes.
void embedding_backward(Stream& s, const Tensor& ids, const Tensor& positions, const Tensor& dout,
                        double dropout, DropoutSeed seed, const Tensor& dwte, const Tensor& dwpe,
                        const Tensor& workspace);
size_t embedding_workspace(Stream& s, int64_t tokens, int64_t vocabulary);

}  // namespace tally::train
