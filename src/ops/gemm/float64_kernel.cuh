// The kernel of float64.h. A block computes tiles of out. Its warps take turns at copying slices of
// both operands into a ring in shared memory (TMA); each warp multiplies 64 x 32 elements.
#pragma once

#include "src/ops/gemm/float64_parts.cuh"

namespace tally::train::cuda::float64 {

template <bool a_outer, bool b_outer, int warps_down, int warps_across, int slots>
struct Kernel {
  static constexpr int threads = 32 * warps_down * warps_across;
  static constexpr int tile_rows = warp_rows * warps_down, tile_cols = warp_cols * warps_across;
  static constexpr int a_bytes = tile_rows * slice * 4, b_bytes = tile_cols * slice * 4;
  static constexpr int slot_bytes = a_bytes + b_bytes;
  static constexpr int shared_bytes = slots * slot_bytes + 1024 + 16 * slots;
  static constexpr int tile_pairs = tile_rows * tile_cols / 2;
  using A = Fragment<a_outer, 2 * row_blocks, true>;
  using B = Fragment<b_outer, col_blocks, false>;
  using Sums = double[row_blocks][col_blocks][4];
  // A thread's values of one step: as read, and widened as far as they are about to be multiplied.
  struct Values {
    float a[2 * row_blocks][2], b[col_blocks][2];
  };
  struct Wide {
    double a[2][4], b[2][col_blocks][2];
  };

  __device__ static void read(Values& v, const A& fa, const B& fb, uint32_t slot, int at) {
    fa.read(v.a, slot, at);
    fb.read(v.b, slot + a_bytes, at);
  }
  // Rows g and g + 8, first half of the step; the same, second half.
  __device__ static void widen_rows(double (&a)[4], const Values& v, int i) {
    a[0] = widened(v.a[2 * i][0]);
    a[1] = widened(v.a[2 * i + 1][0]);
    a[2] = widened(v.a[2 * i][1]);
    a[3] = widened(v.a[2 * i + 1][1]);
  }
  __device__ static void widen_col(double (&b)[2], const Values& v, int j) {
    b[0] = widened(v.b[j][0]);
    b[1] = widened(v.b[j][1]);
  }

  // Multiplies step `now`. Between the multiplications it widens what comes next: the step's own
  // rows, and at the end the first rows and the columns of the next step.
  __device__ static void multiply(Sums& sums, Wide& w, int now, const Values& v, const Values& next,
                                  bool more) {
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
      for (int j = 0; j < col_blocks; ++j) {
        multiply_add(sums[i][j], w.a[i % 2], w.b[now][j]);
        if (j == 0 && i + 1 < row_blocks) widen_rows(w.a[(i + 1) % 2], v, i + 1);
        if (j == 0 && i + 1 == row_blocks && more) widen_rows(w.a[0], next, 0);
        if (i + 1 == row_blocks && more) widen_col(w.b[1 - now][j], next, j);
      }
    }
  }

  __device__ static void locate(const Arguments& p, int tile, int* row, int* col) {
    const int across = p.tiles / p.tiles_down;
    *row = (p.down_first ? tile % p.tiles_down : tile / across) * tile_rows;
    *col = (p.down_first ? tile / p.tiles_down : tile % across) * tile_cols;
  }

  // Copies the slices of a block's segments into the ring, in order. Every thread tracks the
  // position; one of them copies.
  struct Loader {
    Walk walk;
    Segment at{0, 0, 0};
    int row = 0, col = 0;

    __device__ explicit Loader(const Arguments& p) : walk(p) {}

    template <bool along_outer, int extent>
    __device__ static void copy(uint32_t to, const CUtensorMap& map, int outer, int inner,
                                bool boxes, uint32_t full) {
      if constexpr (!along_outer) return copy_box(to, map, inner, outer, full);
      if (boxes) return copy_boxes(to, map, inner, outer / 32, full);
#pragma unroll
      for (int box = 0; box < extent / 32; ++box)
        copy_box(to + box * 32 * 128, map, outer + 32 * box, inner, full);
    }

    // False: there are no more slices.
    __device__ bool next(const Arguments& p) {
      if (at.first == at.last) {
        if (!walk.next(p, &at)) return false;
        locate(p, at.tile, &row, &col);
      }
      return true;
    }
    __device__ void load(const Arguments& p, uint32_t slot, uint32_t full) {
      const int inner = at.first * slice;
      barrier_expect(full, slot_bytes);
      copy<a_outer, tile_rows>(slot, p.a, row, inner, p.a_boxes, full);
      copy<b_outer, tile_cols>(slot + a_bytes, p.b, col, inner, p.b_boxes, full);
    }
  };

  // A warp's position in the ring.
  struct Ring {
    uint32_t base, full, empty;
    int slot = 0;
    uint32_t parity = 0;

    __device__ explicit Ring(uint32_t shared)
        : base((shared + 1023U) & ~1023U),
          full(base + slots * slot_bytes),
          empty(full + 8 * slots) {}
    __device__ uint32_t here() const { return base + slot * slot_bytes; }
    __device__ uint32_t is_full() const { return full + 8 * slot; }
    __device__ uint32_t is_empty() const { return empty + 8 * slot; }
    __device__ void advance() {
      if (++slot == slots) {
        slot = 0;
        parity ^= 1U;
      }
    }
  };

  // Stores the sums of a tile that a later block finishes.
  __device__ static void leave(const Arguments& p, const Sums& sums) {
    double2* to = p.parts + static_cast<int64_t>(blockIdx.x) * tile_pairs + threadIdx.x;
#pragma unroll
    for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
      for (int j = 0; j < col_blocks; ++j) {
#pragma unroll
        for (int h = 0; h < 2; ++h)
          __stcg(to + ((i * col_blocks + j) * 2 + h) * threads,
                 make_double2(sums[i][j][2 * h], sums[i][j][2 * h + 1]));
      }
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
      asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p.marks + blockIdx.x), "r"(1U)
                   : "memory");
  }

  // Adds the parts that earlier blocks stored of a tile that begins at unit `start`.
  __device__ static void collect(const Arguments& p, int64_t start, Sums& sums) {
    const int64_t units = static_cast<int64_t>(p.even_tiles) * p.slices;
    for (int block = static_cast<int>(blockIdx.x) - 1; block >= 0; --block) {
      if (units * (block + 1) / gridDim.x <= start) break;
      if (threadIdx.x == 0) {
        unsigned there = 0;
        while (!there)
          asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                       : "=r"(there)
                       : "l"(p.marks + block)
                       : "memory");
        p.marks[block] = 0;
      }
      __syncthreads();
      const double2* from = p.parts + static_cast<int64_t>(block) * tile_pairs + threadIdx.x;
#pragma unroll
      for (int i = 0; i < row_blocks; ++i) {
#pragma unroll
        for (int j = 0; j < col_blocks; ++j) {
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            const double2 part = load_part(from + ((i * col_blocks + j) * 2 + h) * threads);
            sums[i][j][2 * h] += part.x;
            sums[i][j][2 * h + 1] += part.y;
          }
        }
      }
    }
  }

  // N neighbouring values, as far as there are columns.
  template <int N>
  __device__ static void read_some(float (&v)[N], const float* from, int count) {
#pragma unroll
    for (int c = 0; c < N; ++c) v[c] = 0.0F;
    if (count >= N) {
      if constexpr (N == 4) *reinterpret_cast<float4*>(v) = *reinterpret_cast<const float4*>(from);
      if constexpr (N == 2) *reinterpret_cast<float2*>(v) = *reinterpret_cast<const float2*>(from);
      return;
    }
#pragma unroll
    for (int c = 0; c < N - 1; ++c) {
      if (c < count) v[c] = from[c];
    }
  }
  template <int N>
  __device__ static void write_some(float* to, const float (&v)[N], int count) {
    if (count >= N) {
      if constexpr (N == 4) *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(v);
      if constexpr (N == 2) *reinterpret_cast<float2*>(to) = *reinterpret_cast<const float2*>(v);
      return;
    }
#pragma unroll
    for (int c = 0; c < N - 1; ++c) {
      if (c < count) to[c] = v[c];
    }
  }

  // Rounds the warp's part of a tile and writes it, from (first_row, first_col) on. A thread's
  // columns come in groups of N neighbours.
  __device__ static void finish(const Arguments& p, const Sums& sums, int first_row, int first_col,
                                int lane) {
    constexpr int N = b_outer ? 4 : 2, groups = 8 / N;
    const int g = lane / 4, t = lane % 4;
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      // Neighbours are the blocks' values of one column of mma, or two columns of one block.
      const int col = first_col + (b_outer ? B::outer(0, 2 * t + group) : B::outer(group, 2 * t));
      const int count = p.cols - col;
      alignas(16) float bias[N] = {};
      if (p.bias) read_some(bias, p.bias + col, count);
      alignas(16) float more[2 * row_blocks][N];
#pragma unroll
      for (int i = 0; i < 2 * row_blocks; ++i) {
        const int row = first_row + A::outer(i, g);
        const bool there = p.addend && row < p.rows;
        read_some(more[i], there ? p.addend + row * p.out_leading + col : nullptr,
                  there ? count : 0);
      }
#pragma unroll
      for (int i = 0; i < 2 * row_blocks; ++i) {
        const int row = first_row + A::outer(i, g);
        if (row >= p.rows) continue;
        alignas(16) float v[N];
#pragma unroll
        for (int c = 0; c < N; ++c) {
          const double sum =
              b_outer ? sums[i / 2][c][i % 2 * 2 + group] : sums[i / 2][group][i % 2 * 2 + c];
          v[c] = static_cast<float>(sum + bias[c] + more[i][c]);
        }
        write_some(p.out + row * p.out_leading + col, v, count);
      }
    }
  }

  // Overwrites the slice before the warp's by the one that comes `slots` later. Warps take turns,
  // so that none falls behind; by then all have read it.
  struct Refill {
    Loader loader;
    Ring ring;  // one behind the warp's
    bool started = false;
    int turn = 0;

    __device__ void next(const Arguments& p, int warp, int lane) {
      if (started && loader.next(p)) {
        if (turn == warp && lane == 0) {
          barrier_wait(ring.is_empty(), ring.parity);
          loader.load(p, ring.here(), ring.is_full());
        }
        __syncwarp();
        ++loader.at.first;
      }
      if (started) ring.advance();
      started = true;
      if (++turn == threads / 32) turn = 0;
    }
  };

  // Adds the matmuls of `count` slices of a tile.
  __device__ static void add_up(const Arguments& p, Sums& sums, Ring& ring, Refill& refill,
                                const A& fa, const B& fb, int count, int warp, int lane) {
    constexpr int steps = slice / step;
    Values v[2];
    Wide w;
    barrier_wait(ring.is_full(), ring.parity);
    read(v[0], fa, fb, ring.here(), 0);
    widen_rows(w.a[0], v[0], 0);
#pragma unroll
    for (int j = 0; j < col_blocks; ++j) widen_col(w.b[0][j], v[0], j);
#pragma unroll 1
    for (int k = count; k > 0; --k) {
#pragma unroll
      for (int i = 0; i + 1 < steps; ++i) {
        read(v[(i + 1) % 2], fa, fb, ring.here(), i + 1);
        multiply(sums, w, i % 2, v[i % 2], v[(i + 1) % 2], true);
        if (i == 0) refill.next(p, warp, lane);
      }
      const uint32_t was_read = ring.is_empty();
      ring.advance();
      const bool more = k > 1;
      if (more) {
        barrier_wait(ring.is_full(), ring.parity);
        read(v[0], fa, fb, ring.here(), 0);
      }
      multiply(sums, w, (steps - 1) % 2, v[(steps - 1) % 2], v[0], more);
      // The slot is released only now, after the last values are used, and with a fence between the
      // loads and the next copy, which writes through another proxy: a load that is only issued may
      // read what that copy writes (seen once in some hundred launches).
      fence_async_proxy();
      __syncwarp();
      if (lane == 0) barrier_arrive(was_read);
    }
  }

  __device__ static void run(const Arguments& p, uint8_t* shared) {
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    Ring ring(shared_address(shared));
    Refill refill{Loader(p), ring};
    if (threadIdx.x == 0) {
      for (int i = 0; i < slots; ++i) {
        barrier_init(ring.full + 8 * i, 1);
        barrier_init(ring.empty + 8 * i, threads / 32);
      }
      fence_barrier_init();
    }
    for (int i = 0; i < slots && refill.loader.next(p); ++i) {
      if (threadIdx.x == 0) refill.loader.load(p, ring.base + i * slot_bytes, ring.full + 8 * i);
      ++refill.loader.at.first;
    }
    __syncthreads();
    const int warp_row = warp / warps_across * warp_rows,
              warp_col = warp % warps_across * warp_cols;
    const A fa(warp_row, lane);
    const B fb(warp_col, lane);
    Walk walk(p);
    for (Segment s; walk.next(p, &s);) {
      Sums sums = {};
      add_up(p, sums, ring, refill, fa, fb, s.last - s.first, warp, lane);
      if (s.last < p.slices) {
        leave(p, sums);
        continue;
      }
      if (s.first > 0) collect(p, static_cast<int64_t>(s.tile) * p.slices, sums);
      int row = 0, col = 0;
      locate(p, s.tile, &row, &col);
      finish(p, sums, row + warp_row, col + warp_col, lane);
    }
  }
};

template <typename K>
__global__ void __launch_bounds__(K::threads, 1)
    float64_kernel(const __grid_constant__ Arguments p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ uint8_t shared[];
  K::run(p, shared);
#endif
}

}  // namespace tally::train::cuda::float64
