// Parts of float64.h's kernel: what a block works on, the PTX instructions, and the arrangement of
// a thread's values.
//
// In shared memory rows are 128 bytes, swizzled as TMA does it: 16-byte columns c of row r lie in
// position c ^ (r % 8). An operand that is stored with neighbours along `inner` lies there as
// [outer][32 of inner]; one stored the other way as boxes [32 of inner][32 of outer]. The order of
// rows and of `inner` within a multiplication is free as long as both operands agree; it is chosen
// so that loads are wide and (but for b's narrow ones) meet no bank twice:
//   inner: eight at a time; lane % 4 = t has 2 t and 2 t + 1.
//   outer: lane / 4 = g, see Fragment::outer().
#pragma once

#include "src/device/cuda/tma.cuh"

namespace tally::train::cuda::float64 {

constexpr int slice = 32;  // columns of `inner` that are copied at once
constexpr int step = 8;    // columns of `inner` that are multiplied at once
constexpr int warp_rows = 64, warp_cols = 32;
constexpr int row_blocks = warp_rows / 16, col_blocks = warp_cols / 8;  // tiles of mma, 16 x 8

struct Arguments {
  CUtensorMap a, b;
  float* out;
  const float* bias;
  const float* addend;
  int64_t out_leading;
  int rows, cols;
  int tiles_down, tiles, slices;  // tiles of out, and slices of one
  bool down_first;                // tiles in turn lie below one another
  bool a_boxes, b_boxes;          // all boxes of a slice are copied at once, see describe()
  int even_tiles;                 // the first tiles, which all blocks share evenly
  double2* parts;                 // [blocks][elements of a tile / 2]
  unsigned* marks;                // [blocks], 0 between launches
};

// Slices [first, last) of one tile.
struct Segment {
  int tile, first, last;
};

// The work of one block: its share of the even tiles from its end to its beginning, then whole
// tiles. A tile's last slices are the beginning of some block's share. That block comes to them
// when the blocks before it have finished their slices of the tile, which they take first. So a
// block waits for lower-numbered ones only, and stores what others wait for before it waits itself.
// Not all blocks need to be resident at once, as long as they start in the order of their numbers,
// as the hardware does.
struct Walk {
  int begin, end, whole;

  __device__ explicit Walk(const Arguments& p) {
    const int64_t units = static_cast<int64_t>(p.even_tiles) * p.slices;
    begin = static_cast<int>(units * blockIdx.x / gridDim.x);
    end = static_cast<int>(units * (blockIdx.x + 1) / gridDim.x);
    whole = p.even_tiles + static_cast<int>(blockIdx.x);
  }

  __device__ bool next(const Arguments& p, Segment* s) {
    if (end > begin) {
      s->tile = (end - 1) / p.slices;
      const int start = s->tile * p.slices;
      s->first = max(begin - start, 0);
      s->last = end - start;
      end = start + s->first;
      return true;
    }
    if (whole >= p.tiles) return false;
    *s = {whole, 0, p.slices};
    whole += static_cast<int>(gridDim.x);
    return true;
  }
};

__device__ inline void load2(float (&v)[2], uint32_t from) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v[0]), "=f"(v[1]) : "r"(from) : "memory");
}
__device__ inline void load4(float (&v)[4], uint32_t from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3])
               : "r"(from)
               : "memory");
}
// The load must not move before the barrier that says that it is complete, as __ldcg may.
__device__ inline double2 load_part(const double2* from) {
  double2 v;
  asm volatile("ld.global.cg.v2.f64 {%0, %1}, [%2];" : "=d"(v.x), "=d"(v.y) : "l"(from) : "memory");
  return v;
}
__device__ inline double widened(float x) {
  double y;
  asm volatile("cvt.f64.f32 %0, %1;" : "=d"(y) : "f"(x));  // stays between the multiplications
  return y;
}
// c[16, 8] += a[16, 8] b[8, 8]
__device__ inline void multiply_add(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, "
      "%9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

// One operand as a warp reads it: `count` groups of eight rows (of a) or columns (of b).
template <bool along_outer, int count, bool spread>
struct Fragment {
  uint32_t offset;  // the thread's first values from the slice's beginning

  __device__ Fragment(int first, int lane) {
    const int g = lane / 4, t = lane % 4;
    if constexpr (along_outer) {
      // The thread's row of the box is 2 t, its column of 16 bytes g.
      offset = static_cast<uint32_t>(first / 32 * 32 * 128 + 2 * t * 128 + ((g ^ (2 * t)) << 4));
    } else {
      const int row = first + outer(0, g);
      offset = static_cast<uint32_t>(row * 128 + (((t / 2) ^ (row % 8)) << 4) + t % 2 * 8);
    }
  }

  // v[i][k]: the two values that the thread has of group i in step `at`.
  __device__ void read(float (&v)[count][2], uint32_t slice_at, int at) const {
    if constexpr (along_outer) {
#pragma unroll
      for (int box = 0; box < count / 4; ++box) {
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          float four[4];
          // Row 2 t + 1 has its columns swizzled by one more.
          load4(four, (slice_at + offset + box * 32 * 128 + at * step * 128 + k * 128) ^ (k << 4));
#pragma unroll
          for (int r = 0; r < 4; ++r) v[4 * box + r][k] = four[r];
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) load2(v[i], slice_at + (offset ^ (at << 5)) + i * 8 * 128);
    }
  }

  // The offset of row or column g of group i, from the warp's first.
  __device__ static int outer(int i, int g) {
    if constexpr (along_outer) return i / 4 * 32 + 4 * g + i % 4;
    return 8 * i + (spread ? 2 * (g % 4) + g / 4 : g);
  }
};

}  // namespace tally::train::cuda::float64
