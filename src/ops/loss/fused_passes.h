// The kernels of linear_cross_entropy (loss.h) around its GEMM. x, w, e: bf16, rows of whole
// 16-byte vectors.
//
// The GEMM takes exponentials relative to the label's logit, which is known before it; the row's
// maximum is not. They are limited to 2^largest_exponent. A row that reaches the limit, or whose
// label's logit is not finite, is redone: its logits are computed again and its maximum is found.
// Only a diverging model has such rows, so their time does not matter, but their numbers do.
#pragma once

#include "src/device/cuda/cuda_stream.h"
#include "src/ops/loss/loss.h"

namespace tally::train::cuda {

// Rows that are to be redone, in device memory: how many, and which, in any order.
struct RowList {
  int32_t* count = nullptr;
  int32_t* rows = nullptr;  // [M]
};

// The head's GEMM and its rows' results, as loss.h has them.
struct HeadRows16 {
  const HeadOperands& head;
  LossGradient gradient;
  const HeadResults& results;
};

// shifts[i] = log2(e) x[i] w[labels[i]]; 0 for a negative label.  shifts[M]. Empties `redo`.
void label_shifts(CudaStream& s, const HeadRows16& h, float* shifts, const RowList& redo);

// s_i = sum over p of parts[p,i], in a fixed order: losses, scales and e[i,labels[i]] = -s_i. Rows
// that are out of range are added to `redo`.  parts[count,M]
void row_scales(CudaStream& s, const HeadRows16& h, const float* parts, int64_t count,
                const float* shifts, const RowList& redo);

// Redoes the listed rows from x and w: e, losses and scales. Ends at once where there are none.
void redo_rows(CudaStream& s, const HeadRows16& h, const RowList& redo);

}  // namespace tally::train::cuda
