// Matmuls of small float32 matrices in shared memory, a warp for each tile of the result, in four
// kinds of arithmetic with one interface: Ieee (fused multiply-adds), TensorCores<false> (one TF32
// matmul), TensorCores<true> (three, see ops/gemm/split.cu) and Float64TensorCores
// (tiles_float64.cuh). The attention kernels are written once over them.
//
// multiply<M, N, K, at, bt>(tile, a, lda, b, ldb):  tile[M, N] += A[M, K] B[K, N]
//   A(m, k) is a[m lda + k], with `at` a[k lda + m]; B(k, n) is b[k ldb + n], with `bt` b[n ldb +
//   k]. All matrices begin at 16 bytes and their rows are a multiple of 32 plus 4 elements apart,
//   those of B plus 8 where neither at nor bt is set, so that shared memory has no bank
//   conflicts.
//
// A thread has `rows` x `cols` values of a tile: value(i, j) is the element (row(i), col(j)). Both
// depend on the lane; a thread's columns also depend on at and bt, its rows on `at` alone.
// over_row(x, f) combines the x of all lanes that have the same rows.
//
// Math::stored(x) is the form in which shared memory must hold x; where Math::keeps, that is x
// itself. Math::stored_number(x) is the same where x is not a NaN, or a NaN need not be preserved.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace tally::train::cuda {

__device__ inline int lane_id() {
  return static_cast<int>(threadIdx.x % 32);
}

// A lane (r, c) has the rows r, r + 4, ... and the columns c, c + 8, ..., in fours where memory
// runs along them. Bits 1 and 4 of the lane are r, bits 0, 2 and 3 are c. Loads of 16 bytes take
// half the time where neighbours (lanes that differ in bit 0, or in bit 1) load the same address;
// with this order half of A's loads and half of B's do.
struct Ieee {
  static constexpr bool keeps = true, neighbours = false;

  template <int M, int N, bool at, bool bt>
  struct Tile {
    static constexpr int rows = M / 4, cols = N / 8;
    float v[rows][cols] = {};
    __device__ float& value(int i, int j) { return v[i][j]; }
    __device__ static int row(int i) {
      const int r = lane_row();
      return at ? 16 * (i / 4) + 4 * r + i % 4 : r + 4 * i;
    }
    __device__ static int col(int j) {
      const int c = lane_col();
      return bt ? c + 8 * j : 32 * (j / 4) + 4 * c + j % 4;
    }
  };

  __device__ static int lane_row() { return lane_id() / 2 % 2 + lane_id() / 16 * 2; }
  __device__ static int lane_col() { return lane_id() % 2 + lane_id() / 4 % 4 * 2; }

  template <class F>
  __device__ static float over_row(float x, F&& f) {
    for (const int lanes : {1, 4, 8}) x = f(x, __shfl_xor_sync(0xffffffffU, x, lanes));
    return x;
  }

  __device__ static float stored(float x) { return x; }
  __device__ static float stored_number(float x) { return x; }

  template <int count>
  __device__ static void load4(float (&to)[count], const float* from, int step) {
    static_assert(count % 4 == 0);
#pragma unroll
    for (int i = 0; i < count; i += 4) {
      const float4 x = *reinterpret_cast<const float4*>(from + (i / 4) * step);
      to[i] = x.x;
      to[i + 1] = x.y;
      to[i + 2] = x.z;
      to[i + 3] = x.w;
    }
  }

  template <int M, int N, int K, bool at, bool bt>
  __device__ static void multiply(Tile<M, N, at, bt>& tile, const float* a, int lda, const float* b,
                                  int ldb) {
    using T = Tile<M, N, at, bt>;
    static_assert(!(at && bt), "the attention kernels have no such matmul");
    const int r = lane_row(), c = lane_col();
    if constexpr (at) {  // both along the result: outer products
      a += 4 * r;
      b += 4 * c;
#pragma unroll 4
      for (int k = 0; k < K; ++k) {
        float x[T::rows], y[T::cols];
        load4(x, a + k * lda, 16);
        load4(y, b + k * ldb, 32);
#pragma unroll
        for (int i = 0; i < T::rows; ++i)
#pragma unroll
          for (int j = 0; j < T::cols; ++j) tile.v[i][j] = fmaf(x[i], y[j], tile.v[i][j]);
      }
    } else {
      a += r * lda;
      b += bt ? c * ldb : 4 * c;
#pragma unroll 2
      for (int k = 0; k < K; k += 4) {
        float x[T::rows][4];
#pragma unroll
        for (int i = 0; i < T::rows; ++i) load4(x[i], a + 4 * i * lda + k, 0);
        if constexpr (bt) {
#pragma unroll
          for (int j = 0; j < T::cols; ++j) {
            float y[4];
            load4(y, b + 8 * j * ldb + k, 0);
#pragma unroll
            for (int i = 0; i < T::rows; ++i)
#pragma unroll
              for (int q = 0; q < 4; ++q) tile.v[i][j] = fmaf(x[i][q], y[q], tile.v[i][j]);
          }
        } else {
#pragma unroll
          for (int q = 0; q < 4; ++q) {
            float y[T::cols];
            load4(y, b + (k + q) * ldb, 32);
#pragma unroll
            for (int i = 0; i < T::rows; ++i)
#pragma unroll
              for (int j = 0; j < T::cols; ++j) tile.v[i][j] = fmaf(x[i][q], y[j], tile.v[i][j]);
          }
        }
      }
    }
  }
};

// The fragments of mma.m16n8k8 (PTX ISA, "Matrix Fragments for mma.m16n8k8", the same for .tf32 and
// .f64): with g = lane / 4 and t = lane % 4, A has (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4),
// B has (t, g), (t + 4, g), the result (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). ldmatrix
// loads them where memory runs along k: its 8 x 8 matrices of 16-bit values are our 8 x 4. The k of
// each of the eight slots is free as long as A and B agree. Where memory runs along neither, slots
// t and t + 4 are k = 2t and 2t + 1, which lie in different banks.
struct MmaFragments {
  template <int M, int N, bool at, bool bt>
  struct Tile {
    static constexpr int rows = M / 8, cols = N / 4;
    float v[M / 16][N / 8][4] = {};
    __device__ float& value(int i, int j) { return v[i / 2][j / 2][2 * (i % 2) + j % 2]; }
    __device__ static int row(int i) { return 8 * i + lane_id() / 4; }
    __device__ static int col(int j) { return 8 * (j / 2) + 2 * (lane_id() % 4) + j % 2; }
  };

  template <class F>
  __device__ static float over_row(float x, F&& f) {
    for (const int lanes : {1, 2}) x = f(x, __shfl_xor_sync(0xffffffffU, x, lanes));
    return x;
  }

  // Four 8 x 4 matrices; lane l gives the address of row l % 8 of matrix l / 8.
  __device__ static void load_matrices(float (&x)[4], uint32_t address) {
    uint32_t r[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i] = __uint_as_float(r[i]);
  }

  // The offsets of a lane's values of A and B in shared memory.
  template <bool at, bool bt>
  struct Operands {
    static_assert(!(at && bt), "the attention kernels have no such matmul");
    // Slots t and t + 4: k = first t + {0, second}.
    static constexpr int first = at ? 2 : 1, second = at ? 1 : 4;
    const float *a, *b;
    int lda, ldb;
    uint32_t a_rows, b_rows;

    __device__ Operands(const float* a_at, int a_leading, const float* b_at, int b_leading)
        : lda(a_leading), ldb(b_leading) {
      const int lane = lane_id(), g = lane / 4, t = first * (lane % 4);
      a = a_at + t * lda + g;
      b = b_at + t * ldb + g;
      a_rows =
          static_cast<uint32_t>(__cvta_generic_to_shared(a_at + lane % 16 * lda + lane / 16 * 4));
      b_rows = static_cast<uint32_t>(
          __cvta_generic_to_shared(b_at + (lane % 8 + lane / 16 * 8) * ldb + lane / 8 % 2 * 4));
    }
    // A's fragment: 16 rows from `row`, eight k.
    __device__ void load_a(float (&v)[4], int row, int k) const {
      if constexpr (at) {
        const float* from = a + k * lda + row;
        v[0] = from[0], v[1] = from[8], v[2] = from[second * lda], v[3] = from[second * lda + 8];
      } else {
        load_matrices(v, a_rows + static_cast<uint32_t>((row * lda + k) * 4));
      }
    }
    // B's two fragments: 16 columns from `col`, eight k.
    __device__ void load_b(float (&v)[4], int col, int k) const {
      if constexpr (bt) {
        load_matrices(v, b_rows + static_cast<uint32_t>((col * ldb + k) * 4));
      } else {
        const float* from = b + k * ldb + col;
        v[0] = from[0], v[1] = from[second * ldb], v[2] = from[8], v[3] = from[second * ldb + 8];
      }
    }
  };
};

template <bool three>
struct TensorCores : MmaFragments {
  static constexpr bool keeps = three, neighbours = true;

  // The tensor core ignores the last 13 bits, so adding half of the last bit that it reads rounds
  // the number. Infinities and NaNs are preserved.
  __device__ static float stored(float x) { return fabsf(x) < INFINITY ? stored_number(x) : x; }
  __device__ static float stored_number(float x) {
    return three ? x : __uint_as_float(__float_as_uint(x) + 0x1000U);
  }

  // The operands: their TF32 part, and for three matmuls the remainder too. The remainder of a NaN
  // or an infinity is a NaN.
  template <int count>
  struct Fragment {
    uint32_t large[count], small[three ? count : 1];
    __device__ void set(int i, float x) {
      large[i] = __float_as_uint(x);
      if constexpr (three) {
        large[i] = (large[i] + 0x1000U) & 0xffffe000U;
        small[i] = __float_as_uint(x - __uint_as_float(large[i]));
      }
    }
  };

  __device__ static void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t* b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }

  template <int M, int N, int K, bool at, bool bt>
  __device__ static void multiply(Tile<M, N, at, bt>& tile, const float* a, int lda, const float* b,
                                  int ldb) {
    const Operands<at, bt> operands(a, lda, b, ldb);
#pragma unroll 4
    for (int k = 0; k < K; k += 8) {
      Fragment<4> x[M / 16];
      Fragment<2> y[N / 8];
#pragma unroll
      for (int i = 0; i < M / 16; ++i) {
        float v[4];
        operands.load_a(v, 16 * i, k);
#pragma unroll
        for (int q = 0; q < 4; ++q) x[i].set(q, v[q]);
      }
#pragma unroll
      for (int j = 0; j < N / 8; j += 2) {
        float v[4];
        operands.load_b(v, 8 * j, k);
#pragma unroll
        for (int q = 0; q < 4; ++q) y[j + q / 2].set(q % 2, v[q]);
      }
      if constexpr (three) {
#pragma unroll
        for (int i = 0; i < M / 16; ++i)
#pragma unroll
          for (int j = 0; j < N / 8; ++j) mma(tile.v[i][j], x[i].small, y[j].large);
#pragma unroll
        for (int i = 0; i < M / 16; ++i)
#pragma unroll
          for (int j = 0; j < N / 8; ++j) mma(tile.v[i][j], x[i].large, y[j].small);
      }
#pragma unroll
      for (int i = 0; i < M / 16; ++i)
#pragma unroll
        for (int j = 0; j < N / 8; ++j) mma(tile.v[i][j], x[i].large, y[j].large);
    }
  }
};

}  // namespace tally::train::cuda
