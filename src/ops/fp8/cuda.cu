// fp8.h's casts on a GPU, those of whole tensors. Both are bound by memory: the largest magnitude reads
// x once, a cast reads it once and writes one byte for each copy.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/fp8/amax.cuh"
#include "src/ops/fp8/cast.cuh"
#include "src/ops/fp8/fp8.h"
#include "src/ops/fp8/gemm.h"

namespace tally::train::cuda {
namespace {

constexpr int threads = 256;

template <typename T, int N>
__global__ void __launch_bounds__(threads) amax_kernel(const T* x, int64_t count, unsigned* amax) {
  unsigned largest = 0;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * threads * N;
  int64_t at = (static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x) * N;
#pragma unroll 4
  for (; at < count; at += stride) {
    float values[N];
    widen(load<T, N>(x + at), values);
#pragma unroll
    for (int k = 0; k < N; ++k) largest = max(largest, magnitude(values[k]));
  }
  raise_amax<threads>(largest, amax);
}

void amax(Stream& stream, In x, Out amax) {
  CudaStream& s = cuda_stream(stream);
  s.fill_zero(amax.data, amax.bytes());
  const int64_t count = x.numel();
  if (count == 0) return;
  by_type(x.dtype, fp8_amax.name(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, double>) {
      throw DeviceError("fp8_amax: float64");
    } else {
      const auto launch = [&](auto width) {
        constexpr int N = decltype(width)::value;
        const auto kernel = amax_kernel<T, N>;
        const int64_t blocks =
            min(divide_up(count, int64_t{threads} * N), resident_blocks(s, kernel, threads));
        kernel<<<static_cast<unsigned>(blocks), threads, 0, s.stream()>>>(x.as<T>(), count,
                                                                          amax.as<unsigned>());
      };
      if (vectorizable<T>(count, x.as<char>())) {
        launch(std::integral_constant<int, vector_size<T>>{});
      } else {
        launch(std::integral_constant<int, 1>{});
      }
      CUDA_LAUNCHED();
    }
  });
}

// A tile of the matrix: its rows are the tokens or outputs, of which a column of it has 128 bytes.
constexpr int tile_rows = 128, tile_columns = 64;
constexpr int row_words = tile_rows / 4;

struct Scaled {
  float multiplier, scale;
};

// Every block finds them by itself.
__device__ inline Scaled scaled_by(const float* amaxes, int count, float largest) {
  unsigned found = 0;
  for (int i = 0; i < count; ++i) found = max(found, magnitude(amaxes[i]));
  const float amax = __uint_as_float(found);
  const float used = amax < smallest_amax ? smallest_amax : amax;
  return {largest / used, used / largest};
}

template <typename T>
struct CastOperands {
  const T* x;
  const float* amaxes;
  int parts;
  uint8_t *rows, *columns;  // null: not wanted
  float* scale;
  int64_t height, width;
};

// Eight neighbours of each of four rows a thread: columns are made of words of four rows.
template <typename T, __nv_fp8_interpretation_t format>
__global__ void __launch_bounds__(threads) cast_kernel(CastOperands<T> o) {
  const Scaled by = scaled_by(o.amaxes, o.parts, largest_in<format>);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *o.scale = by.scale;
  __shared__ unsigned tile[tile_columns][row_words + 1];
  const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  // Four threads take 32 columns of a row; a warp takes 8 groups of four rows, and half the
  // columns.
  const int column = (warp % 2) * 32 + (lane % 4) * 8;
  const int group = (warp / 2) * 8 + lane / 4;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * tile_rows;
  const int64_t first_column = static_cast<int64_t>(blockIdx.x) * tile_columns;
  unsigned words[8] = {};
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int64_t row = first_row + group * 4 + r, at = first_column + column;
    if (row >= o.height || at >= o.width) continue;
    float values[8];
    load_eight(o.x + row * o.width + at, values);
#pragma unroll
    for (float& value : values) value *= by.multiplier;
    Vector<unsigned, 2> bytes;
#pragma unroll
    for (int k = 0; k < 8; k += 4)
      bytes.v[k / 4] = four_of<format>(values[k], values[k + 1], values[k + 2], values[k + 3]);
    if (o.rows) store<unsigned, 2>(reinterpret_cast<unsigned*>(o.rows + row * o.width + at), bytes);
#pragma unroll
    for (int k = 0; k < 8; ++k) words[k] |= (bytes.v[k / 4] >> (k % 4 * 8) & 0xffU) << (r * 8);
  }
  if (!o.columns) return;
#pragma unroll
  for (int k = 0; k < 8; ++k) tile[column + k][group] = words[k];
  __syncthreads();
  const int64_t row = first_row + lane * 4;
#pragma unroll
  for (int c = warp; c < tile_columns; c += threads / lanes) {
    const int64_t at = first_column + c;
    if (at < o.width && row < o.height)
      *reinterpret_cast<unsigned*>(o.columns + at * o.height + row) = tile[c][lane];
  }
}

template <typename T>
void launch_cast(CudaStream& s, DType format, const CastOperands<T>& o) {
  const dim3 grid(static_cast<unsigned>(divide_up(o.width, tile_columns)),
                  static_cast<unsigned>(divide_up(o.height, tile_rows)));
  if (format == DType::e4m3) {
    cast_kernel<T, __NV_E4M3><<<grid, threads, 0, s.stream()>>>(o);
  } else {
    cast_kernel<T, __NV_E5M2><<<grid, threads, 0, s.stream()>>>(o);
  }
  CUDA_LAUNCHED();
}

void cast(Stream& stream, In x, In amaxes, Fp8Copies out) {
  CudaStream& s = cuda_stream(stream);
  const int64_t width = x.dim(-1), height = width ? x.numel() / width : 0;
  if (width % fp8_multiple != 0 || height % fp8_multiple != 0)
    throw DeviceError("fp8_cast: a matrix of " + std::to_string(height) + " x " +
                      std::to_string(width) + ": sizes are multiples of 16");
  if (x.numel() == 0) return;
  if (out.scaling != Fp8Scaling::tensor) return cast_with_own_scales(s, x, out);
  const Tensor& scale = out.rows.defined() ? out.row_scales : out.column_scales;
  by_cast_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_cast<T>(
        s, out.format(),
        {x.as<T>(), amaxes.as<float>(), static_cast<int>(amaxes.numel()), out.rows.as<uint8_t>(),
         out.columns.as<uint8_t>(), scale.as<float>(), height, width});
  });
}

const OnCuda versions[] = {{fp8_amax, amax}, {fp8_cast, cast}, {fp8_gemm, multiply_fp8}};

}  // namespace
}  // namespace tally::train::cuda
