// The GEMMs of a training step with what is fused to them: bias, residual, an activation.
//   y = x w^T + b (+ residual);  dx = dy w;  dw += dy^T x;  db += column sums of dy
//   x[M,K], w[N,K] (as PyTorch's Linear), b[N], y[M,N], row-major; M rows are tokens
// The activation is one of MlpActivation that is not gated: GELU (Hendrycks and Gimpel,
// arXiv:1606.08415) in two forms.
//
// x, w, b, y and dx have the compute type (f64, f32, bf16, f16). dw and db have the gradient type
// (f32 for bf16 and f16, else the compute type). Accumulation is in f32 at least. An undefined
// tensor (data null) means "none".
//
// The versions, and what each serves:
//   CPU (cpu.cc)          every type, by ATen; 16-bit types compute in float32
//   cuBLASLt (cuda*.cc)   every type on every GPU, through gemm.h; with a bias in the epilogue
//                         where the library has it, and GELU's tanh form for 16-bit types whose
//                         input is saved
//   CUTLASS               bf16 on compute capability 9.0, 16-byte aligned, K and N multiples of 8:
//   (gemm/fused*)         bias; bias and residual; bias and GELU; GELU's gradient (width a multiple
//                         of 128). The erf form only where GELU's derivative is saved;
//                         f16 only for the erf form.
//   float64 (gemm/)       f32 GEMMs on the float64 tensor cores of compute capability 9.0, see
//                         gemm.h
//   passes (passes.cu)    bias, activation and column sums as kernels of their own, for what no
//                         epilogue serves
//
// The choice on a GPU: autotune (fastest() in gemm.h) times the versions at the first call of a
// shape and remembers the choice. Options limit them:
//   --no-fusion gelu             GELU is a kernel of its own
//   --no-fusion gelu-derivative  GELU's input is saved instead of its derivative (SavedValue)
//   --no-fusion bias             no CUTLASS kernels for a bias or a residual
//   --no-fusion residual         the residual is added by norm.h
//   --no-fusion float64          no float64 tensor cores
//   --deterministic              nothing is timed: a bias in cuBLASLt's epilogue, GELU as a kernel
// Without CUTLASS in the build, or without code for compute capability 9.0, its kernels are left
// out.
//
// DeviceError: cuBLASLt has no algorithm for a GEMM; a row of linear_backward_input_activation does
// not fit the second workspace; a row is too long for the column sums; the type is not a
// floating-point type.
#pragma once

#include <cstdint>

#include "src/device/mlp_activation.h"
#include "src/ops/operation.h"

namespace tally::train {

struct LinearWeights {
  In w, b;
};
// y = x w^T + b, and + residual[M,N] where it is defined (it may be y's memory).
inline Operation<void(const Compute& c, In x, LinearWeights weights, Out y, In residual)>
    linear_forward{"linear_forward"};

// The value that a GEMM with an activation f saves for its backward pass, in the compute type: f's
// input, or f's derivative there. The derivative makes the backward pass a multiplication. The
// input lets f's output be computed again.
enum class SavedValue : uint8_t { input, derivative };
struct ActivationForm {
  MlpActivation kind = MlpActivation::gelu_tanh;
  SavedValue saved = SavedValue::input;
};
// The faster SavedValue on this device for x[M,K], w[N,K]: the derivative where both directions
// have a fused kernel for it, which timing found faster at every size tried (bench/notes/gemm.md).
inline Operation<SavedValue(const Compute& c, DType type, int64_t n, int64_t k, MlpActivation kind)>
    faster_saved_value{"faster_saved_value"};

// v = x w^T + b, y = f(v), and saved = v or f'(v).
struct ActivationOutputs {
  Out saved, y;
};
inline Operation<void(const Compute& c, In x, LinearWeights weights, ActivationForm form,
                      ActivationOutputs out)>
    linear_activation_forward{"linear_activation_forward"};

// y = f(pre): the second half of linear_activation_forward, for recomputation. Where `amax` is
// defined, it becomes the largest magnitude of y, as fp8_amax finds it (fp8.h).
inline Operation<void(Stream& s, In pre, Out y, MlpActivation kind, Out amax)>
    mlp_activation_forward{"mlp_activation_forward"};
// dpre = dy * f'(pre), which may be the memory of dy or pre, and where they are defined
// db += its column sums and amax = its largest magnitude.
struct ActivationPass {
  Out dpre, db, amax;
};
inline Operation<void(Stream& s, In dy, In pre, MlpActivation kind, ActivationPass out)>
    mlp_activation_backward{"mlp_activation_backward"};

// dx = dy w, and + addend[M,K] where it is defined (not dx's memory).
inline Operation<void(const Compute& c, In dy, In w, Out dx, In addend)> linear_backward_input{
    "linear_backward_input"};

// dpre = (dy w) * f'(v) from what was saved of v, and db += column sums of dpre where db is
// defined (b of the layer before). `dpre` may be the same memory as `saved`; other memory is
// faster.
struct ActivationInput {
  In saved;
  ActivationForm form;
};
struct ActivationGradients {
  Out dpre, db;
};
inline Operation<void(const Compute& c, In dy, In w, ActivationInput f, ActivationGradients out)>
    linear_backward_input_activation{"linear_backward_input_activation"};

// dw += dy^T x, or dw = dy^T x without `accumulate`; and db += column sums of dy where db is
// defined.
struct WeightGradients {
  Out dw, db;
  bool accumulate = true;
};
inline Operation<void(const Compute& c, In dy, In x, WeightGradients out)> linear_backward_weight{
    "linear_backward_weight"};

// db[j] += sum over rows of dy[i, first + j]: a range of the columns.
inline Operation<void(Stream& s, In dy, int64_t first, Out db)> linear_backward_bias{
    "linear_backward_bias"};

// Makes the column sums of dx = dy w from those of dy, without reading either:
//   db += sums, and dbx += sums w where it is defined.  sums[N], db[N], dbx[K]: the gradient type
inline Operation<void(Stream& s, In sums, In w, Out db, Out dbx)> linear_backward_bias_input{
    "linear_backward_bias_input"};

}  // namespace tally::train
