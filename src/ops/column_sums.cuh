// The kernel of column_sums.h, which may multiply the elements before it sums them.
#pragma once

#include <type_traits>

#include "src/device/cuda/kernel.cuh"
#include "src/ops/column_sums.h"
#include "src/ops/fp8/amax.cuh"

namespace tally::train::cuda {

constexpr int sum_rows = 8;  // rows that a block works on at a time; each row has 32 threads

// The factor of elements before they are summed: with `reads` of<T>(saved), and the product
// is written.
struct NoFactor {
  static constexpr bool reads = false;
};

// parts[blockIdx.y, column] = sum of this block's rows of dy, times Factor of `pre`; the products
// are also written to dpre, and with `finds_amax` *amax is raised to their largest magnitude: a kernel
// that does not look for it needs fewer registers, and their number decides the order of the sums.
// `stride`: elements between rows. Null: parts.
template <typename T, int N, typename Factor, bool finds_amax>
__global__ void __launch_bounds__(32 * sum_rows)
    sum_kernel(const T* dy, const T* pre, T* dpre, Acc<T>* parts, unsigned* amax, int64_t rows,
               int64_t columns, int64_t stride, int64_t rows_per_block) {
  using A = Acc<T>;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x) * N;
  const int64_t first = blockIdx.y * rows_per_block;
  const int64_t last = first + rows_per_block < rows ? first + rows_per_block : rows;
  A sums[N] = {};
  [[maybe_unused]] unsigned largest = 0;
  // All loads of a few rows come before the first store: the output may be one of the inputs, so
  // the compiler must keep their order.
  constexpr int deep = Factor::reads ? 2 : 4;
  for (int64_t row = first + threadIdx.y; column < columns && row < last; row += deep * sum_rows) {
    Vector<T, N> g[deep], x[deep];
#pragma unroll
    for (int d = 0; d < deep; ++d) {
      const int64_t at = row + d * sum_rows;
      if (at >= last) continue;
      g[d] = load<T, N>(dy + at * stride + column);
      if constexpr (Factor::reads) x[d] = load<T, N>(pre + at * stride + column);
    }
#pragma unroll
    for (int d = 0; d < deep; ++d) {
      const int64_t at = row + d * sum_rows;
      if (at >= last) continue;
      if constexpr (Factor::reads) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const A saved = widen(x[d].v[k]);
          g[d].v[k] = narrow<T>(widen(g[d].v[k]) * Factor::template of<T>(saved));
        }
        store<T, N>(dpre + at * stride + column, g[d]);
        if constexpr (finds_amax) largest = max(largest, largest_of(g[d]));
      }
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k] += widen(g[d].v[k]);
    }
  }
  if constexpr (finds_amax) raise_amax<32 * sum_rows>(largest, amax);
  if (!parts) return;
  __shared__ A shared[sum_rows][32 * N + 1];
#pragma unroll
  for (int k = 0; k < N; ++k) shared[threadIdx.y][threadIdx.x * N + k] = sums[k];
  __syncthreads();
  const int thread = threadIdx.y * 32 + threadIdx.x;
  for (int c = thread; c < 32 * N; c += 32 * sum_rows) {
    const int64_t out = static_cast<int64_t>(blockIdx.x) * 32 * N + c;
    if (out >= columns) continue;
    A sum = 0;
    for (int r = 0; r < sum_rows; ++r) sum += shared[r][c];
    parts[blockIdx.y * columns + out] = sum;
  }
}

// Columns [first, first + columns) of dy; `saved` and `products` as Factor says. db undefined: no
// sums. amax, which starts at 0, of the products; undefined: none.
struct SumOperands {
  In dy, saved;
  Out products, db;
  int64_t first = 0, columns = 0;
  Out amax;
};

template <typename T, int N, typename Factor, bool finds_amax>
void launch_sum(CudaStream& s, const SumOperands& o) {
  using A = Acc<T>;
  const int64_t stride = o.dy.dim(-1), rows = stride ? o.dy.numel() / stride : 0;
  const int64_t columns = o.columns;
  if (rows == 0 || columns == 0) return;
  const int64_t across = divide_up(columns, 32 * N);
  // One full wave of blocks, at least 32 rows each, and parts that fit the workspace.
  int64_t down = resident_blocks(s, sum_kernel<T, N, Factor, finds_amax>, 32 * sum_rows) / across;
  down = down > 1 ? down : 1;
  down = down < divide_up(rows, 32) ? down : divide_up(rows, 32);
  const auto room = static_cast<int64_t>(s.workspace_bytes() / sizeof(A)) / columns;
  down = down < room ? down : room;
  if (down < 1)
    throw DeviceError("column sums: rows of " + std::to_string(columns) + " are too long");
  const int64_t rows_per_block = divide_up(rows, down);
  down = divide_up(rows, rows_per_block);
  A* parts = o.db.defined() ? static_cast<A*>(s.workspace()) : nullptr;
  const dim3 grid(static_cast<unsigned>(across), static_cast<unsigned>(down));
  sum_kernel<T, N, Factor, finds_amax><<<grid, dim3(32, sum_rows), 0, s.stream()>>>(
      o.dy.as<T>() + o.first, o.saved.as<T>(), o.products.as<T>(), parts, o.amax.as<unsigned>(),
      rows, columns, stride, rows_per_block);
  CUDA_LAUNCHED();
  if (o.db.defined()) add_shares(s, {parts, down, columns}, o.db);
}

template <typename Factor>
void sum_by_type(CudaStream& s, const char* op, const SumOperands& o) {
  by_type(o.dy.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    const auto launch = [&](auto width) {
      constexpr int N = decltype(width)::value;
      if constexpr (Factor::reads) {
        if (o.amax.defined()) return launch_sum<T, N, Factor, true>(s, o);
      }
      launch_sum<T, N, Factor, false>(s, o);
    };
    if (vectorizable<T>(o.dy.dim(-1), o.dy.as<T>(), o.saved.as<T>(), o.products.as<T>()) &&
        o.first % vector_size<T> == 0 && o.columns % vector_size<T> == 0) {
      launch(std::integral_constant<int, vector_size<T>>{});
    } else {
      launch(std::integral_constant<int, 1>{});
    }
  });
}

}  // namespace tally::train::cuda
