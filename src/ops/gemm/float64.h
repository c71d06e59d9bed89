// float32 GEMMs on the float64 tensor cores of Hopper. The tensor cores multiply and add as fast as
// the float32 units do at their best, which no float32 kernel reaches: three operands a
// multiply-add are more than the register file's banks deliver (measured: two thirds, cuBLASLt's
// hand-written kernels 62 to 79%). The operands are widened exactly, multiplications are exact, and
// sums are kept in float64 and rounded once: the bound of the error is far below that of float32
// sums. The SMs share the tiles evenly ("stream-K", Osama et al. 2023). Where blocks divide a tile,
// their parts are added in the order of the blocks, so that results repeat bit for bit on the same
// number of SMs.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace tally::train::cuda {

// out[rows, cols] = a[rows, inner] b[inner, cols] (+ bias[cols]) (+ addend)
struct Float64Gemm {
  int64_t rows = 0, cols = 0, inner = 0;
  // Stored [rows, inner] and [inner, cols]; transposed: [inner, rows] and [cols, inner]. Row by
  // row, `leading` elements apart.
  const float *a = nullptr, *b = nullptr;
  int64_t a_leading = 0, b_leading = 0;
  bool a_transposed = false, b_transposed = false;
  float* out = nullptr;
  int64_t out_leading = 0;
  const float* bias = nullptr;    // null: none
  const float* addend = nullptr;  // laid out as `out`, may be `out`; null: none
};

// Whether this build has the kernels: Hopper is among its architectures.
bool float64_gemms_built();

// Whether they serve it on a GPU of compute capability 9.0: the driver can describe the operands to
// TMA, addresses and distances between rows are multiples of 16 bytes, and sizes fit.
bool float64_gemm_supported(const Float64Gemm& problem);

// The shapes that tiles can have, 0 to float64_tiles - 1; the fastest depends on the sizes.
constexpr int float64_tiles = 2;

// Bytes of the kernel's scratch: room for parts of tiles, and flags that tell which are complete.
// The flags must be zero before their first use, and the kernel leaves them zero.
size_t float64_parts_bytes(int sms);
size_t float64_flags_bytes(int sms);

// Enqueues it. GEMMs on streams that overlap need parts and flags of their own.
cudaError_t float64_gemm(const Float64Gemm& problem, int tile, int sms, void* parts, void* marks,
                         cudaStream_t stream);

}  // namespace tally::train::cuda
