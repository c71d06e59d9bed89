// Sums over rows on a GPU, which biases' gradients and norms need: blocks take shares of the rows,
// and a second kernel adds the shares in a fixed order, so that results repeat bit for bit.
#pragma once

#include "src/device/cuda/cuda_stream.h"

namespace tally::train::cuda {

// db[j] += sum over rows of dy[i, first + j]. Uses s.workspace().
void column_sums(CudaStream& s, const In& dy, int64_t first, const Out& db);

// `count` shares of `elements` sums each, f32 (f64 for f64).
struct Shares {
  const void* data = nullptr;
  int64_t count = 0, elements = 0;
};
// first[i] += sum over p of shares[p, i], in the order of p. `second` and `third`, where defined,
// get the same from the arrays of shares that follow.
void add_shares(CudaStream& s, const Shares& shares, const Out& first, const Out& second = {},
                const Out& third = {});

}  // namespace tally::train::cuda
