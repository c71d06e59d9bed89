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

// The columns of a tile of a matrix [height,width]. `bytes_of(row, column)` gives eight neighbours of
// a row, once for each eight. They are four of each thread's rows: columns are made of words of four
// rows.
template <typename F>
__device__ inline void transpose_tile(int64_t height, int64_t width, uint8_t* columns,
                                      const F& bytes_of) {
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
    if (row >= height || at >= width) continue;
    const Vector<unsigned, 2> bytes = bytes_of(row, at);
#pragma unroll
    for (int k = 0; k < 8; ++k) words[k] |= (bytes.v[k / 4] >> (k % 4 * 8) & 0xffU) << (r * 8);
  }
  if (!columns) return;
#pragma unroll
  for (int k = 0; k < 8; ++k) tile[column + k][group] = words[k];
  __syncthreads();
  const int64_t row = first_row + lane * 4;
#pragma unroll
  for (int c = warp; c < tile_columns; c += threads / lanes) {
    const int64_t at = first_column + c;
    if (at < width && row < height)
      *reinterpret_cast<unsigned*>(columns + at * height + row) = tile[c][lane];
  }
}

dim3 tiles_of(int64_t height, int64_t width) {
  return {static_cast<unsigned>(divide_up(width, tile_columns)),
          static_cast<unsigned>(divide_up(height, tile_rows))};
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

template <typename T, __nv_fp8_interpretation_t format>
__global__ void __launch_bounds__(threads) cast_kernel(CastOperands<T> o) {
  const Scaled by = scaled_by(o.amaxes, o.parts, largest_in<format>);
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *o.scale = by.scale;
  transpose_tile(o.height, o.width, o.columns, [&](int64_t row, int64_t at) {
    float values[8];
    load_eight(o.x + row * o.width + at, values);
#pragma unroll
    for (float& value : values) value *= by.multiplier;
    Vector<unsigned, 2> bytes;
#pragma unroll
    for (int k = 0; k < 8; k += 4)
      bytes.v[k / 4] = four_of<format>(values[k], values[k + 1], values[k + 2], values[k + 3]);
    if (o.rows) store<unsigned, 2>(reinterpret_cast<unsigned*>(o.rows + row * o.width + at), bytes);
    return bytes;
  });
}

struct CompleteOperands {
  const uint8_t* rows;
  const float* amaxes;
  int parts;
  float largest;  // the format's
  uint8_t* columns;
  float* scale;
  int64_t height, width;
};

__global__ void __launch_bounds__(threads) complete_kernel(CompleteOperands o) {
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
    *o.scale = scaled_by(o.amaxes, o.parts, o.largest).scale;
  transpose_tile(o.height, o.width, o.columns, [&](int64_t row, int64_t at) {
    return load<unsigned, 2>(reinterpret_cast<const unsigned*>(o.rows + row * o.width + at));
  });
}

template <typename T>
void launch_cast(CudaStream& s, DType format, const CastOperands<T>& o) {
  const dim3 grid = tiles_of(o.height, o.width);
  if (format == DType::e4m3) {
    cast_kernel<T, __NV_E4M3><<<grid, threads, 0, s.stream()>>>(o);
  } else {
    cast_kernel<T, __NV_E5M2><<<grid, threads, 0, s.stream()>>>(o);
  }
  CUDA_LAUNCHED();
}

// Columns are written in words of rows.
void check_sizes(const char* operation, int64_t height, int64_t width, bool columns) {
  if (width % fp8_multiple == 0 && (!columns || height % fp8_multiple == 0)) return;
  throw DeviceError(std::string(operation) + ": a matrix of " + std::to_string(height) + " x " +
                    std::to_string(width) + ": sizes are multiples of 16");
}

void cast(Stream& stream, In x, In amaxes, Fp8Copies out) {
  CudaStream& s = cuda_stream(stream);
  const int64_t width = x.dim(-1), height = width ? x.numel() / width : 0;
  const bool one_scale = out.scaling == Fp8Scaling::tensor;
  check_sizes(fp8_cast.name(), height, width, out.columns.defined() || !one_scale);
  if (x.numel() == 0) return;
  if (!one_scale) return cast_with_own_scales(s, x, out);
  const Tensor& scale = out.rows.defined() ? out.row_scales : out.column_scales;
  by_cast_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    launch_cast<T>(
        s, out.format(),
        {x.as<T>(), amaxes.as<float>(), static_cast<int>(amaxes.numel()), out.rows.as<uint8_t>(),
         out.columns.as<uint8_t>(), scale.as<float>(), height, width});
  });
}

void complete(Stream& stream, In amaxes, Fp8Copies out) {
  CudaStream& s = cuda_stream(stream);
  const int64_t height = out.rows.dim(0), width = out.rows.dim(1);
  check_sizes(fp8_complete.name(), height, width, true);
  if (out.rows.numel() == 0) return;
  complete_kernel<<<tiles_of(height, width), threads, 0, s.stream()>>>(
      {out.rows.as<uint8_t>(), amaxes.as<float>(), static_cast<int>(amaxes.numel()),
       largest_of(out.format()), out.columns.as<uint8_t>(), out.row_scales.as<float>(), height,
       width});
  CUDA_LAUNCHED();
}

const OnCuda versions[] = {
    {fp8_amax, amax}, {fp8_cast, cast}, {fp8_complete, complete}, {fp8_gemm, multiply_fp8}};

}  // namespace
}  // namespace tally::train::cuda
