// Hopper's matrix instructions (wgmma) as the kernels of ops/attention/hopper.h use them: 16-bit
// operands, float32 sums in registers. A warpgroup (four warps) issues them together. They run
// asynchronously until wgmma_wait() has seen their group finished; until then neither their sums
// nor operands in registers may be touched. (Where ptxas finds that they are, or that registers do
// not suffice, it reports "wgmma.mma_async instructions are serialized", which costs a third.)
//
// A thread's sums of 64 x N: row 16 warp + lane / 4 (+ 8), columns 8 j + 2 (lane % 4) + {0, 1} in
// d[4 j + {0, 1}] (+ 2 for the row 8 further down). An A operand of 64 x 16 in registers has the
// same rows, packed in pairs: a[0..3] = columns 0..7 of both rows, then columns 8..15.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tally::train::cuda {

// Rows of 128 bytes in shared memory, swizzled as TMA does it with CU_TENSOR_MAP_SWIZZLE_128B,
// eight rows in 1,024 bytes (PTX ISA, "Matrix Descriptor Format"). 16 columns further: + 2; 16
// rows: + 128.
__device__ inline uint64_t wgmma_tile(uint32_t address) {
  constexpr uint64_t swizzle_128 = 1, eight_rows = 1024 >> 4;
  return (swizzle_128 << 62) | (eight_rows << 32) | (uint64_t{1} << 16) |
         ((address & 0x3ffff) >> 4);
}

// Called before the first instruction of a group that uses values in registers.
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most `pending` of the groups committed last are unfinished.
template <int pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// Keeps the compiler from moving uses of the sums across a wait.
template <int count>
__device__ inline void wgmma_arrived(float (&sums)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

#define TALLY_SUMS8(d, i)                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define TALLY_SUMS32(d, i) \
  TALLY_SUMS8(d, i), TALLY_SUMS8(d, i + 8), TALLY_SUMS8(d, i + 16), TALLY_SUMS8(d, i + 24)

// Matmuls over 16 of the inner dimension, added to d or (add == false) written to it:
//   scores          d[64, 128] = a[64, 16] b[128, 16]^T, rows along the inner dimension; or 64
//   from_registers  d[64, 64] = a[64, 16] b[16, 64], a in registers; or 128 for each 64 of b and d
//   transposed      d[64, 64] = a[16, 64]^T b[16, 64]
template <typename T>
struct Wgmma;

#define TALLY_WGMMA(T, NAME)                                                                 \
  template <>                                                                                \
  struct Wgmma<T> {                                                                          \
    __device__ static void scores(float (&d)[64], uint64_t a, uint64_t b, bool add) {        \
      asm volatile(                                                                          \
          "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"                                       \
          "wgmma.mma_async.sync.aligned.m64n128k16.f32." NAME "." NAME                       \
          " {"                                                                               \
          "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
          "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
          "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"   \
          "}, %64, %65, p, 1, 1, 0, 0;\n}\n"                                                 \
          : TALLY_SUMS32(d, 0), TALLY_SUMS32(d, 32)                                          \
          : "l"(a), "l"(b), "r"(static_cast<int>(add)));                                     \
    }                                                                                        \
    __device__ static void scores(float (&d)[32], uint64_t a, uint64_t b, bool add) {        \
      asm volatile(                                                                          \
          "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                       \
          "wgmma.mma_async.sync.aligned.m64n64k16.f32." NAME "." NAME                        \
          " {"                                                                               \
          "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"   \
          "}, %32, %33, p, 1, 1, 0, 0;\n}\n"                                                 \
          : TALLY_SUMS32(d, 0)                                                               \
          : "l"(a), "l"(b), "r"(static_cast<int>(add)));                                     \
    }                                                                                        \
    __device__ static void from_registers(float (&d)[32], const uint32_t* a, uint64_t b,     \
                                          bool add) {                                        \
      asm volatile(                                                                          \
          "{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n"                                       \
          "wgmma.mma_async.sync.aligned.m64n64k16.f32." NAME "." NAME                        \
          " {"                                                                               \
          "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"   \
          "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1;\n}\n"                                   \
          : TALLY_SUMS32(d, 0)                                                               \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add))); \
    }                                                                                        \
    __device__ static void from_registers(float (&d)[64], const uint32_t* a, uint64_t b,     \
                                          bool add) {                                        \
      asm volatile(                                                                          \
          "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"                                       \
          "wgmma.mma_async.sync.aligned.m64n128k16.f32." NAME "." NAME                       \
          " {"                                                                               \
          "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
          "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
          "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"   \
          "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}\n"                                   \
          : TALLY_SUMS32(d, 0), TALLY_SUMS32(d, 32)                                          \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add))); \
    }                                                                                        \
    __device__ static void transposed(float (&d)[32], uint64_t a, uint64_t b, bool add) {    \
      asm volatile(                                                                          \
          "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"                                       \
          "wgmma.mma_async.sync.aligned.m64n64k16.f32." NAME "." NAME                        \
          " {"                                                                               \
          "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
          "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"   \
          "}, %32, %33, p, 1, 1, 1, 1;\n}\n"                                                 \
          : TALLY_SUMS32(d, 0)                                                               \
          : "l"(a), "l"(b), "r"(static_cast<int>(add)));                                     \
    }                                                                                        \
  };

TALLY_WGMMA(__nv_bfloat16, "bf16")
TALLY_WGMMA(__half, "f16")
#undef TALLY_WGMMA
#undef TALLY_SUMS32
#undef TALLY_SUMS8

// Two sums as a pair of 16-bit values, `low` in the lower half.
template <typename T>
__device__ inline uint32_t packed(float low, float high);
template <>
__device__ inline uint32_t packed<__nv_bfloat16>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
template <>
__device__ inline uint32_t packed<__half>(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Four 8 x 8 matrices of pairs; lane l has the address of row l % 8 of matrix l / 8.
__device__ inline void store_matrices(uint32_t to, const uint32_t* pairs) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
               : "memory");
}

}  // namespace tally::train::cuda
