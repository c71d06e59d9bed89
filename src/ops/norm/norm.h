// LayerNorm over the last dimension (Ba, Kiros and Hinton, arXiv:1607.06450), or RMSNorm (Zhang and
// Sennrich, arXiv:1910.07467), alone or fused with the dropout and residual addition before it.
//   mean = sum(x) / C;  rstd = 1 / sqrt(sum((x - mean)^2) / C + epsilon)
//   y = (x - mean) rstd gamma + beta
//   backward, with xhat = (x - mean) rstd and g = dy gamma:
//   dx = rstd (g - mean(g) - xhat mean(g xhat));  dgamma += sum dy xhat;  dbeta += sum dy
// RMSNorm is the same with mean = 0, without mean(g) and without beta: it is computed where beta
// and mean, in the backward pass mean and dbeta, are undefined.
//   x[M,C], gamma[C], beta[C], y[M,C], dy[M,C], dx[M,C]: the compute type (f64, f32, bf16, f16)
//   mean[M], rstd[M]: f32 (f64 for f64), for the backward pass
//   dgamma[C], dbeta[C], dbias[C]: the gradient type (f32, f64 for f64)
// GPUs compute in float32 (float64 for f64). The CPU takes the sums over a row in float64.
//
// The versions, and what each serves:
//   CPU (cpu.cc)                  every type and width; threads share rows, or columns of the sums
//   warps (forward_warp.cuh,      GPUs, the usual widths: one, two or four warps a row go from row
//   backward_warp.cuh, rows.cuh)  to row, copying the next rows to shared memory meanwhile
//                                 (cp.async). 16-bit types: C = 512, 768, 1024, 1280, 1544 to 2048,
//                                 3592 to 5120; f32: C = 768, 1024.
//   blocks (forward.cu,           GPUs, every other width and f64. Forward: a warp a row up to 256
//   backward.cu)                  vectors, a block a row beyond. Backward: a block for a row or
//                                 two of up to 1,024 vectors.
//   long rows                     GPUs, backward over more vectors: one kernel for the rows' gradient
//   (backward_long.cuh)           and one for the sums over rows
//   residual*                     the addition without a norm, every type: an element or a vector a
//                                 thread
// A vector is 16 bytes, or one value where C is not a whole number of vectors or an address is not
// aligned to 16 bytes. The width alone decides (with_row_shape() in rows.cuh, choose() in
// forward.cu and backward.cu). No kernel is timed, and no option changes the kernel.
//
// The layer around it chooses (nn/projection.h):
//   without dropout           the GEMM adds the residual, then layernorm_forward
//   dropout, or               residual_layernorm_forward
//   --no-fusion residual
//   --no-fusion bias-sums     `dbias` is undefined: the bias's gradient is a pass of its own
//
// Sums over rows have a fixed order, so results repeat bit for bit on the same GPU. DeviceError on
// a GPU: a row has more than 8,192 vectors forward (65,536 values of 16 bits, 32,768 of f32), or
// the type is not a floating-point type (on the CPU: std::invalid_argument).
#pragma once

#include "src/device/step_state.h"
#include "src/ops/operation.h"

namespace tally::train {

struct NormWeights {
  In gamma, beta;
  double epsilon = 0;
};
struct NormOutputs {
  Out y, mean, rstd;
};
inline Operation<void(Stream& s, In x, NormWeights weights, NormOutputs out)> layernorm_forward{
    "layernorm_forward"};

// The addition before a norm: x + dropout(delta).
struct ResidualSum {
  In x, delta;
  DropoutMask mask;
};
// r = the sum; y = layernorm(r).
inline Operation<void(Stream& s, ResidualSum sum, NormWeights weights, Out r, NormOutputs out)>
    residual_layernorm_forward{"residual_layernorm_forward"};
// The addition alone, where a stage of a pipeline ends.
inline Operation<void(Stream& s, ResidualSum sum, Out r)> residual_forward{"residual_forward"};
// y = dropout(x); y may be x's memory. It is the backward pass, too: of dropout itself, and of
// `delta` above, whose gradient is that of r under the mask.
inline Operation<void(Stream& s, In x, DropoutMask mask, Out y)> apply_dropout{"apply_dropout"};

// The operands of the backward pass. residual_grad[M,C], where defined, is added to dx.
struct NormOperands {
  In dy, x, gamma, mean, rstd, residual_grad;
};
// dx is written, and may be residual_grad's memory. dgamma and dbeta are added to. `ddelta`, where
// defined, gets dx under `mask`, the gradient of `delta` above; without dropout the caller uses dx
// itself. The column sums of ddelta, or of dx where ddelta is undefined, are added to `dbias` where
// it is defined: the gradient of the bias that went into `delta`.
struct NormGradients {
  Out dx, dgamma, dbeta, dbias, ddelta;
  DropoutMask mask;
};
inline Operation<void(Stream& s, const NormOperands& in, const NormGradients& out)>
    layernorm_backward{"layernorm_backward"};

}  // namespace tally::train
