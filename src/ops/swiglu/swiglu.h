// SwiGLU (Shazeer, arXiv:2002.05202): the gated activation of Llama's MLP.
//   y = silu(gate) up;  silu(v) = v s(v), s the logistic function
//   backward: dup = dy silu(gate);  dgate = dy up s(gate) (1 + gate (1 - s(gate)))
//   h[M,2F]: a row has its F gates and then its F ups, as Megatron-LM's --swiglu splits the rows of
//   its first GEMM; y[M,F], dy[M,F], dh[M,2F]. All have the compute type (f64, f32, bf16, f16).
// Computed in float32 (float64 for f64).
//
// `amax`, f32[1] in device memory or undefined, becomes the largest magnitude of the result as it
// was stored, NaN if there is one: what fp8.h's fp8_amax would find in a pass of its own.
//
// The MLP saves h. y is computed again from it where it is recomputed, which costs one pass.
//
// The versions, and what each serves:
//   CPU (cpu.cc)    every type; threads share the rows
//   GPU (cuda.cu)   every type; a vector of 16 bytes a thread where F is a whole number of vectors
//                   and every address is aligned to 16 bytes, else a value a thread
// Timing and options do not change the kernel. DeviceError on a GPU, std::invalid_argument on
// the CPU: the type is not a floating-point type.
#pragma once

#include "src/ops/operation.h"

namespace tally::train {

inline Operation<void(Stream& s, In h, Out y, Out amax)> swiglu_forward{"swiglu_forward"};

// dh may be h's memory.
inline Operation<void(Stream& s, In dy, In h, Out dh, Out amax)> swiglu_backward{"swiglu_backward"};

}  // namespace tally::train
