// fp8.h's casts with a scale for each row, or for each block of numbers. A tile of 128 x 128 numbers
// has all that the scales of its blocks depend on: they are found and cast in one pass, which reads
// two bytes of bf16 and writes one for each copy. The scale of a row needs the whole row: a block of
// threads takes one, and its second look finds it in the cache. That of a column needs all rows: one
// pass finds the magnitudes of rows and columns, and a second casts to both.
#include "src/ops/fp8/amax.cuh"
#include "src/ops/fp8/cast.cuh"

namespace tally::train::cuda {
namespace {

constexpr int side = static_cast<int>(fp8_block);  // a tile's height and width
constexpr int strip = 32;                          // rows and columns of it that a warp takes
constexpr int strips = side / strip;
constexpr int tile_threads = strips * strips * lanes;
constexpr int tile_blocks = 2;  // on an SM: one loads while the other stores

template <typename T>
struct ScaledCast {
  const T* x;
  uint8_t *rows, *columns;  // null: not wanted, and without scales
  float *row_scales, *column_scales;
  int64_t height, width;
  bool square;  // a block of a tile has one scale
};

// A thread's part of a tile: eight neighbours of each of four rows. Zeros beyond the matrix.
struct Part {
  int row, column;    // within the tile
  int64_t top, left;  // within the matrix
  int row_strip, column_strip;
  float x[4][8];
};

template <typename T>
__device__ inline Part part_of_tile(const ScaledCast<T>& o) {
  Part p;
  const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  p.row_strip = warp / strips;
  p.column_strip = warp % strips;
  p.row = p.row_strip * strip + lane / 4 * 4;
  p.column = p.column_strip * strip + lane % 4 * 8;
  p.top = static_cast<int64_t>(blockIdx.y) * side + p.row;
  p.left = static_cast<int64_t>(blockIdx.x) * side + p.column;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (p.top + r < o.height && p.left < o.width) {
      load_eight(o.x + (p.top + r) * o.width + p.left, p.x[r]);
    } else {
#pragma unroll
      for (float& x : p.x[r]) x = 0;
    }
  }
  return p;
}

// The largest magnitudes of a tile, by strips: of each row, each column, and of each warp's part.
struct TileMagnitudes {
  unsigned rows[strips][side], columns[strips][side], parts[strips * strips];

  __device__ unsigned of_row(int row) const { return over_strips(rows, row); }
  __device__ unsigned of_column(int column) const { return over_strips(columns, column); }
  __device__ unsigned of_all() const {
    unsigned largest = 0;
#pragma unroll
    for (const unsigned part : parts) largest = max(largest, part);
    return largest;
  }

 private:
  __device__ static unsigned over_strips(const unsigned (&of)[strips][side], int at) {
    unsigned largest = 0;
#pragma unroll
    for (int s = 0; s < strips; ++s) largest = max(largest, of[s][at]);
    return largest;
  }
};

// All threads of a block call it.
__device__ inline void find_magnitudes(const Part& p, TileMagnitudes* found) {
  const int lane = threadIdx.x % lanes;
  unsigned all = 0;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    unsigned largest = 0;
#pragma unroll
    for (const float x : p.x[r]) largest = max(largest, magnitude(x));
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, 1));
    largest = max(largest, __shfl_xor_sync(all_lanes, largest, 2));
    if (lane % 4 == 0) found->rows[p.column_strip][p.row + r] = largest;
    all = max(all, largest);
  }
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    unsigned largest = 0;
#pragma unroll
    for (int r = 0; r < 4; ++r) largest = max(largest, magnitude(p.x[r][k]));
#pragma unroll
    for (int d = 4; d < lanes; d *= 2)
      largest = max(largest, __shfl_xor_sync(all_lanes, largest, d));
    if (lane < 4) found->columns[p.row_strip][p.column + k] = largest;
  }
  all = __reduce_max_sync(all_lanes, all);
  if (lane == 0) found->parts[threadIdx.x / lanes] = all;
  __syncthreads();
}

// The multiplier, a power of two, of numbers whose largest magnitude has these bits. The scale is its
// reciprocal, and either gives the other one exactly.
template <__nv_fp8_interpretation_t format>
__device__ inline float multiplier_of(unsigned found) {
  return fp8_power_of_two(__uint_as_float(found), largest_in<format>);
}

// A word of `columns` has four rows. One more word a column keeps the banks apart.
using TileWords = unsigned[side][side / 4 + 1];

// Writes the copies of a tile. All threads of a block call it.
template <typename T, __nv_fp8_interpretation_t format>
__device__ inline void cast_part(const ScaledCast<T>& o, const Part& p, const float (&by_row)[4],
                                 const float (&by_column)[8], TileWords& words) {
  if (o.rows && p.left < o.width) {
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if (p.top + r >= o.height) break;
      const float m = by_row[r];
      Vector<unsigned, 2> bytes;
#pragma unroll
      for (int k = 0; k < 8; k += 4)
        bytes.v[k / 4] =
            four_of<format>(p.x[r][k] * m, p.x[r][k + 1] * m, p.x[r][k + 2] * m, p.x[r][k + 3] * m);
      store<unsigned, 2>(reinterpret_cast<unsigned*>(o.rows + (p.top + r) * o.width + p.left),
                         bytes);
    }
  }
  if (!o.columns) return;
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const float m = by_column[k];
    words[p.column + k][p.row / 4] =
        four_of<format>(p.x[0][k] * m, p.x[1][k] * m, p.x[2][k] * m, p.x[3][k] * m);
  }
  __syncthreads();
  const int warp = threadIdx.x / lanes, lane = threadIdx.x % lanes;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * side + lane * 4;
  if (row >= o.height) return;
#pragma unroll
  for (int c = warp; c < side; c += tile_threads / lanes) {
    const int64_t column = static_cast<int64_t>(blockIdx.x) * side + c;
    if (column < o.width)
      *reinterpret_cast<unsigned*>(o.columns + column * o.height + row) = words[c][lane];
  }
}

// The scales of a tile's blocks, where scaling.h says.
template <typename T, __nv_fp8_interpretation_t format>
__device__ inline void write_scales(const ScaledCast<T>& o, const TileMagnitudes& found) {
  const int64_t across = blockIdx.x, down = blockIdx.y;
  const int t = threadIdx.x;
  if (o.square) {
    if (t > 0) return;
    const float scale = 1 / multiplier_of<format>(found.of_all());
    if (o.rows) o.row_scales[down * fp8_block_stride(o.width) + across] = scale;
    if (o.columns) o.column_scales[across * fp8_block_stride(o.height) + down] = scale;
  } else if (t < side) {
    const int64_t row = down * side + t;
    if (o.rows && row < o.height)
      o.row_scales[across * o.height + row] = 1 / multiplier_of<format>(found.of_row(t));
  } else if (t < 2 * side) {
    const int64_t column = across * side + t - side;
    if (o.columns && column < o.width)
      o.column_scales[down * o.width + column] =
          1 / multiplier_of<format>(found.of_column(t - side));
  }
}

template <typename T, __nv_fp8_interpretation_t format>
__global__ void __launch_bounds__(tile_threads, tile_blocks) cast_blocks_kernel(ScaledCast<T> o) {
  __shared__ TileMagnitudes found;
  __shared__ TileWords words;
  const Part p = part_of_tile(o);
  find_magnitudes(p, &found);
  write_scales<T, format>(o, found);
  float by_row[4], by_column[8];
  const float by_all = o.square ? multiplier_of<format>(found.of_all()) : 0;
#pragma unroll
  for (int r = 0; r < 4; ++r)
    by_row[r] = o.square ? by_all : multiplier_of<format>(found.of_row(p.row + r));
#pragma unroll
  for (int k = 0; k < 8; ++k)
    by_column[k] = o.square ? by_all : multiplier_of<format>(found.of_column(p.column + k));
  cast_part<T, format>(o, p, by_row, by_column, words);
}

// Raises what starts at 0. Most tiles find less than what is there: reading is cheaper.
__device__ inline void raise(float* magnitude, unsigned found) {
  auto* bits = reinterpret_cast<unsigned*>(magnitude);
  if (found > __ldcg(bits)) atomicMax(bits, found);
}

// The magnitudes of rows and columns, in the memory of their scales.
template <typename T>
__global__ void __launch_bounds__(tile_threads, tile_blocks)
    find_rows_and_columns_kernel(ScaledCast<T> o) {
  __shared__ TileMagnitudes found;
  const Part p = part_of_tile(o);
  find_magnitudes(p, &found);
  const int t = threadIdx.x;
  const int64_t row = static_cast<int64_t>(blockIdx.y) * side + t;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * side + t - side;
  if (t < side) {
    if (o.rows && row < o.height) raise(o.row_scales + row, found.of_row(t));
  } else if (t < 2 * side) {
    if (o.columns && column < o.width) raise(o.column_scales + column, found.of_column(t - side));
  }
}

constexpr int plain_threads = 256;

// Scales from the magnitudes in their memory.
template <__nv_fp8_interpretation_t format>
__global__ void __launch_bounds__(plain_threads) make_scales_kernel(float* scales, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * plain_threads + threadIdx.x;
  if (i < count) scales[i] = 1 / multiplier_of<format>(__float_as_uint(scales[i]));
}

template <typename T, __nv_fp8_interpretation_t format>
__global__ void __launch_bounds__(tile_threads, tile_blocks)
    cast_rows_and_columns_kernel(ScaledCast<T> o) {
  __shared__ TileWords words;
  const Part p = part_of_tile(o);
  float by_row[4], by_column[8];
#pragma unroll
  for (int r = 0; r < 4; ++r)
    by_row[r] = o.rows && p.top + r < o.height ? 1 / o.row_scales[p.top + r] : 0;
#pragma unroll
  for (int k = 0; k < 8; ++k)
    by_column[k] = o.columns && p.left + k < o.width ? 1 / o.column_scales[p.left + k] : 0;
  cast_part<T, format>(o, p, by_row, by_column, words);
}

// A row a block.
template <typename T, __nv_fp8_interpretation_t format>
__global__ void __launch_bounds__(plain_threads) cast_rows_kernel(ScaledCast<T> o) {
  __shared__ unsigned shared[plain_threads / lanes];
  const int64_t row = blockIdx.x;
  const T* from = o.x + row * o.width;
  unsigned largest = 0;
  for (int64_t at = threadIdx.x * 8; at < o.width; at += plain_threads * 8) {
    float x[8];
    load_eight(from + at, x);
#pragma unroll
    for (const float value : x) largest = max(largest, magnitude(value));
  }
  largest = __reduce_max_sync(all_lanes, largest);
  if (threadIdx.x % lanes == 0) shared[threadIdx.x / lanes] = largest;
  __syncthreads();
#pragma unroll
  for (const unsigned other : shared) largest = max(largest, other);
  const float m = multiplier_of<format>(largest);
  if (threadIdx.x == 0) o.row_scales[row] = 1 / m;
  for (int64_t at = threadIdx.x * 8; at < o.width; at += plain_threads * 8) {
    float x[8];
    load_eight(from + at, x);
    Vector<unsigned, 2> bytes;
#pragma unroll
    for (int k = 0; k < 8; k += 4)
      bytes.v[k / 4] = four_of<format>(x[k] * m, x[k + 1] * m, x[k + 2] * m, x[k + 3] * m);
    store<unsigned, 2>(reinterpret_cast<unsigned*>(o.rows + row * o.width + at), bytes);
  }
}

template <__nv_fp8_interpretation_t format>
void make_scales(CudaStream& s, float* scales, int64_t count) {
  const auto blocks = static_cast<unsigned>(divide_up(count, plain_threads));
  make_scales_kernel<format><<<blocks, plain_threads, 0, s.stream()>>>(scales, count);
  CUDA_LAUNCHED();
}

template <typename T, __nv_fp8_interpretation_t format>
void cast_by_rows(CudaStream& s, const ScaledCast<T>& o, dim3 tiles) {
  if (!o.columns) {
    cast_rows_kernel<T, format>
        <<<static_cast<unsigned>(o.height), plain_threads, 0, s.stream()>>>(o);
    CUDA_LAUNCHED();
    return;
  }
  s.fill_zero(o.column_scales, static_cast<size_t>(o.width) * sizeof(float));
  if (o.rows) s.fill_zero(o.row_scales, static_cast<size_t>(o.height) * sizeof(float));
  find_rows_and_columns_kernel<T><<<tiles, tile_threads, 0, s.stream()>>>(o);
  CUDA_LAUNCHED();
  make_scales<format>(s, o.column_scales, o.width);
  if (o.rows) make_scales<format>(s, o.row_scales, o.height);
  cast_rows_and_columns_kernel<T, format><<<tiles, tile_threads, 0, s.stream()>>>(o);
  CUDA_LAUNCHED();
}

template <typename T, __nv_fp8_interpretation_t format>
void cast(CudaStream& s, const ScaledCast<T>& o, Fp8Scaling scaling) {
  const dim3 tiles(static_cast<unsigned>(fp8_blocks(o.width)),
                   static_cast<unsigned>(fp8_blocks(o.height)));
  if (scaling == Fp8Scaling::row) return cast_by_rows<T, format>(s, o, tiles);
  cast_blocks_kernel<T, format><<<tiles, tile_threads, 0, s.stream()>>>(o);
  CUDA_LAUNCHED();
}

}  // namespace

void cast_with_own_scales(CudaStream& s, const In& x, const Fp8Copies& out) {
  const int64_t width = x.dim(-1), height = x.numel() / width;
  by_cast_type(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const ScaledCast<T> o{x.as<T>(),
                          out.rows.as<uint8_t>(),
                          out.columns.as<uint8_t>(),
                          out.row_scales.as<float>(),
                          out.column_scales.as<float>(),
                          height,
                          width,
                          out.scaling == Fp8Scaling::block128};
    if (out.format() == DType::e4m3) return cast<T, __NV_E4M3>(s, o, out.scaling);
    cast<T, __NV_E5M2>(s, o, out.scaling);
  });
}

}  // namespace tally::train::cuda
