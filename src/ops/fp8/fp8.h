// GEMMs of operands in FP8 (Micikevicius et al., "FP8 Formats for Deep Learning", arXiv:2209.05433),
// and the casts that make these operands. Numbers that share a scale (scaling.h) have it from their
// own largest magnitude at that moment ("current scaling"):
//   scale = amax / max(format);  q = round(x / scale), to nearest even;  x ~ q scale
//   out[R,N] = sum over k of (a scale_a)[R,K] (b scale_b)[N,K]^T (+ bias[N]) (+ addend[R,N])
// max(e4m3) = 448, without infinities; max(e5m2) = 57344. The largest magnitude becomes the largest
// number of the format: nothing saturates. All scales but that of a whole tensor are rounded up to a
// power of two, so that scaling rounds nothing. An infinity or a NaN in x makes NaNs of what its
// scale reaches. Magnitudes below `smallest_amax` do not lower a scale further.
//
// x has the compute type (f64, f32, bf16, f16); amax and scales are f32 in device memory, a GPU's
// scales at multiples of 16 bytes, as cuBLASLt asks without saying so. Sums are
// taken in f32, or with `fast` within the tensor cores in fewer bits, rounded once to out's type.
//
// The versions, and what each serves:
//   CPU (cpu.cc)   every type: the same casts and scales, GEMMs of the widened numbers in float32
//   GPU (cuda*)    x and out in bf16, f32 results without bias; cuBLASLt's tensor core GEMMs on
//                  compute capability 8.9 and from 9.0 on, of scales that are not the tensor's on
//                  9.0 alone. R, N and K are multiples of 16; rows with one scale are cast from
//                  any R.
// The GEMMs of a layer multiply along different dimensions, and Hopper's tensor cores take only
// operands that lie along the sum: a matrix is cast to its rows and to its columns.
//   y = x w^T: rows of x, rows of w;  dx = dy w: rows of dy, columns of w;
//   dw = dy^T x: columns of dy, columns of x
//
// DeviceError: cuBLASLt has no algorithm, which it names; the type is not one of those above.
#pragma once

#include "src/ops/fp8/scaling.h"
#include "src/ops/operation.h"

namespace tally::train {

// amax = the largest magnitude in x; NaN if there is one. 0 for an empty x.
inline Operation<void(Stream& s, In x, Out amax)> fp8_amax{"fp8_amax"};

// x[R,C] in FP8. `rows` [R,C] and `columns` [C,R] have the same format; either may be undefined. Each
// has its own scales and is rounded from x, so that both have the same numbers only where their
// scales are: those of a tensor, which lie in the same memory, and of blocks.
struct Fp8Copies {
  Tensor rows, columns, row_scales, column_scales;
  Fp8Scaling scaling = Fp8Scaling::tensor;

  DType format() const { return rows.defined() ? rows.dtype : columns.dtype; }
};
// Fp8Scaling::tensor: the scale is that of the largest of `amaxes`[n], those of all parts of a matrix that processes
// divide. The others find theirs in x.
inline Operation<void(Stream& s, In x, In amaxes, Fp8Copies out)> fp8_cast{"fp8_cast"};

// Fp8Scaling::tensor: `columns` and the scale from `rows`, which another process may have cast. The
// magnitudes are those of the cast. The result is what fp8_cast() makes of x.
inline Operation<void(Stream& s, In amaxes, Fp8Copies out)> fp8_complete{"fp8_complete"};

struct Fp8Matrix {
  In data, scales;
  Fp8Scaling scaling = Fp8Scaling::tensor;
};
struct Fp8Sum {
  In bias, addend;    // undefined: none. `addend` may be out's memory.
  bool fast = false;  // see above
};
// A GPU multiplies tensor by tensor, row by row, and vector128 by vector128 or block128.
inline Operation<void(const Compute& c, Fp8Matrix a, Fp8Matrix b, Out out, Fp8Sum sum)> fp8_gemm{
    "fp8_gemm"};

}  // namespace tally::train
