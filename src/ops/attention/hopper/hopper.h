// Flash attention on Hopper's matrix instructions (wgmma), for 16-bit types and heads of 64 or 128.
// For heads of 64 cuDNN takes a quarter to a third longer backward and a twentieth to a third longer
// forward. For heads of 128 it takes a twentieth longer forward, and backward about as long
// (bench/notes/attention.md, "Flash attention for Hopper").
//
// With S = scale Q K^T, stats = log(rowsum(exp(S))), P = exp(S - stats), dP = dO V^T and delta =
// rowsum(dO O):
//   O = P V    dV = P^T dO    dS = P (dP - delta)    dK = scale dS^T Q    dQ = scale dS K
// with dropout's mask on P in O and dV, and on dP
// (Dao et al., arXiv:2205.14135, appendix B). P and dS are rounded to 16 bits before the GEMMs that
// read them; sums are float32. dQ is summed by atomic additions in global memory, so its last bits
// differ from run to run, and it is not used with ComputeOptions::deterministic. Everything else is
// repeatable.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/attention/attention.h"

namespace tally::train::cuda {

// True for 16-bit types, heads of 64 or 128, whole blocks of 128 tokens, a scale above 0 and tensors
// of less than 2^31 elements, on compute capability 9.0, unless the options turn it off
// (Fusions::attention) or the result must be repeatable (deterministic).
bool hopper_attention_serves(const CudaCompute& c, const AttentionShape& shape, DType dtype);

// Bytes of scratch. Backward: the sums of dQ and two numbers for each row of scores; forward: a
// counter.
size_t hopper_attention_workspace(const AttentionShape& shape);

// attention_forward() and attention_backward() for packed operands. Without dropout either may go
// with cuDNN's other pass. Throw DeviceError where the driver cannot describe the tensors.
void hopper_attention_forward(CudaStream& s, const AttentionArgs& args);
void hopper_attention_backward(CudaStream& s, const AttentionArgs& args,
                               const AttentionGradients& gradients);

}  // namespace tally::train::cuda
