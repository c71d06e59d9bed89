// The passes of linear_cross_entropy (loss.h) around its product. x, w, e: bf16, rows of whole
// 16-byte vectors.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"

namespace tally::train::cuda {

// shifts[i] = log2(e) x[i] w[targets[i]]; 0 for a negative target.  shifts[M]
void target_shifts(CudaStream& s, const Tensor& x, const Tensor& w, const Tensor& targets,
                   float* shifts);

// s_i = sum over p of parts[p,i], in a fixed order: losses, shares and e[i,targets[i]] = -s_i.
//   parts[count,M], e[M,Vp]
void target_probabilities(CudaStream& s, const float* parts, int64_t count, const Tensor& targets,
                          double factor, const StepState* state, const Tensor& losses,
                          const Tensor& shares, const Tensor& e);

}  // namespace tally::train::cuda
