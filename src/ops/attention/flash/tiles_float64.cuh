// The matmuls of tiles.cuh on Hopper's float64 tensor cores, which have the rate of float32
// multiply-adds and read a tenth of their operands (ops/gemm/float64.h). Operands are float32 in
// shared memory and widened in registers. Each multiplication is exact, sums over K are float64,
// and they are rounded once before they are added to the tile.
#pragma once

#include "src/ops/attention/flash/tiles.cuh"

namespace tally::train::cuda {

struct Float64TensorCores : MmaFragments {
  static constexpr bool keeps = true, neighbours = true;

  __device__ static float stored(float x) { return x; }
  __device__ static float stored_number(float x) { return x; }

  // Columns of a tile that are summed at once: more would not fit the registers.
  static constexpr int part_cols = 32;

  __device__ static void mma(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
    __trap();  // float64_gemms_serve() is false there
#endif
  }

  template <int M, int N, int K, bool at, bool bt>
  __device__ static void multiply(Tile<M, N, at, bt>& tile, const float* a, int lda, const float* b,
                                  int ldb) {
    const Operands<at, bt> operands(a, lda, b, ldb);
    constexpr int row_blocks = M / 16, col_blocks = part_cols / 8;
    static_assert(N % part_cols == 0);
#pragma unroll
    for (int part = 0; part < N; part += part_cols) {
      double sums[row_blocks][col_blocks][4] = {};
#pragma unroll 4
      for (int k = 0; k < K; k += 8) {
        double x[row_blocks][4], y[col_blocks][2];
#pragma unroll
        for (int i = 0; i < row_blocks; ++i) {
          float v[4];
          operands.load_a(v, 16 * i, k);
#pragma unroll
          for (int q = 0; q < 4; ++q) x[i][q] = v[q];
        }
#pragma unroll
        for (int j = 0; j < col_blocks; j += 2) {
          float v[4];
          operands.load_b(v, part + 8 * j, k);
#pragma unroll
          for (int q = 0; q < 4; ++q) y[j + q / 2][q % 2] = v[q];
        }
#pragma unroll
        for (int i = 0; i < row_blocks; ++i)
#pragma unroll
          for (int j = 0; j < col_blocks; ++j) mma(sums[i][j], x[i], y[j]);
      }
#pragma unroll
      for (int i = 0; i < row_blocks; ++i)
#pragma unroll
        for (int j = 0; j < col_blocks; ++j)
#pragma unroll
          for (int q = 0; q < 4; ++q)
            tile.v[i][part / 8 + j][q] += static_cast<float>(sums[i][j][q]);
    }
  }
};

}  // namespace tally::train::cuda
