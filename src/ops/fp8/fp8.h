// GEMMs of operands in FP8 (Micikevicius et al., "FP8 Formats for Deep Learning",
// arXiv:2209.05433), and the casts that make these operands. A matrix has one scale, from its own
// largest magnitude ("current scaling per tensor"):
//   scale = amax / max(format);  q = round(x / scale), to nearest even;  x ~ q scale
//   out[R,N] = scale_a scale_b a[R,K] b[N,K]^T (+ bias[N]) (+ addend[R,N])
// max(e4m3) = 448, without infinities; max(e5m2) = 57344. The largest magnitude becomes the largest
// number of the format: nothing saturates. An infinity or a NaN in x makes NaNs of the result.
// Magnitudes below `smallest_amax` do not lower the scale further.
//
// x has the compute type (f64, f32, bf16, f16); amax and scale are f32[1] in device memory, a GPU's
// scales at multiples of 16 bytes, as cuBLASLt asks without saying so. Sums are
// taken in f32, or with `fast` within the tensor cores in fewer bits, rounded once to out's type.
//
// The versions, and what each serves:
//   CPU (cpu.cc)   every type: the same casts and scales, GEMMs of the widened numbers in float32
//   GPU (cuda*)    x and out in bf16, f32 results without bias; cuBLASLt's tensor core GEMMs on
//                  compute capability 8.9 and from 9.0 on. R, N and K are multiples of 16.
// Casts read x once and write both copies of it: the GEMMs of a layer multiply along different
// dimensions, and Hopper's tensor cores take only operands that lie along the sum.
//   y = x w^T: rows of x, rows of w;  dx = dy w: rows of dy, columns of w;
//   dw = dy^T x: columns of dy, columns of x
//
// DeviceError: cuBLASLt has no algorithm, which it names; the type is not one of those above.
#pragma once

#include "src/ops/operation.h"

namespace tally::train {

// The first compute capability whose tensor cores take FP8.
inline constexpr int fp8_capability = 89;
inline constexpr float smallest_amax = 1e-30F;
constexpr float largest_of(DType format) {
  return format == DType::e4m3 ? 448.0F : 57344.0F;
}

// amax = the largest magnitude in x; NaN if there is one. 0 for an empty x.
inline Operation<void(Stream& s, In x, Out amax)> fp8_amax{"fp8_amax"};

// x[R,C] in FP8. `rows` [R,C] and `columns` [C,R] have the same format and the same numbers; either
// may be undefined.
struct Fp8Copies {
  Tensor rows, columns, scale;
};
// The scale is that of the largest of `amaxes`[n], those of all parts of a matrix that processes
// divide.
inline Operation<void(Stream& s, In x, In amaxes, Fp8Copies out)> fp8_cast{"fp8_cast"};

struct Fp8Matrix {
  In data, scale;
};
struct Fp8Sum {
  In bias, addend;    // undefined: none. `addend` may be out's memory.
  bool fast = false;  // see above
};
inline Operation<void(const Compute& c, Fp8Matrix a, Fp8Matrix b, Out out, Fp8Sum sum)> fp8_gemm{
    "fp8_gemm"};

}  // namespace tally::train
