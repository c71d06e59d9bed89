// Token and position embeddings.
//   ids[B,T] i32, wte[V,C], wpe[P,C] (undefined with rotary positions), out[B,T,C]
#pragma once

#include "src/device/step_state.h"
#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

// out = dropout(wte[ids] + wpe[t])
void embedding_forward(Stream& s, const Tensor& ids, const Tensor& wte, const Tensor& wpe,
                       double dropout, DropoutSeed seed, const Tensor& out);
// dwte[ids] += dout, dwpe[t] += sum over B of dout (gradient type). The order of additions is
// fixed, so that results repeat bit for bit. `workspace`: embedding_workspace() bytes.
void embedding_backward(Stream& s, const Tensor& ids, const Tensor& dout, double dropout,
                        DropoutSeed seed, const Tensor& dwte, const Tensor& dwpe,
                        const Tensor& workspace);
size_t embedding_workspace(Stream& s, int64_t tokens, int64_t vocabulary);

}  // namespace tally::train
