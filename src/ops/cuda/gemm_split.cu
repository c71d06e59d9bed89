// float32 products on tensor cores with float32's accuracy: x = large + small with both parts TF32
// numbers (11 bits of mantissa each), and x y = small large + large small + large large, without
// the product of the small parts, which lies below float32's last bit.
#include <algorithm>

#include "src/ops/cuda/common.cuh"
#include "src/ops/cuda/gemm.h"

namespace tally::train::cuda {
namespace {

// Rounded to the ten stored bits of TF32's mantissa, halves away from zero, as the hardware's own
// conversion does. What is not finite stays that.
__device__ inline float to_tf32(float x) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return x;
  return __uint_as_float((bits + 0x1000U) & 0xffffe000U);
}

struct Split {
  const float* from;
  float* to;
  int64_t rows, cols, leading, stride;
  bool down, large_first;
};

// blockIdx.z is the matrix of the batch; a block takes 256 columns of some rows.
__global__ void __launch_bounds__(256) split_kernel(Split p) {
  const int64_t column = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= p.cols) return;
  const float* from = p.from + blockIdx.z * p.stride;
  float* to = p.to + static_cast<int64_t>(blockIdx.z) * 2 * p.rows * p.cols;
  const int64_t part = p.down ? p.rows * p.cols : p.cols;
#pragma unroll 4
  for (int64_t row = blockIdx.y; row < p.rows; row += gridDim.y) {
    const float x = from[row * p.leading + column];
    const float large = to_tf32(x), small = to_tf32(x - large);
    const int64_t at = (p.down ? row : 2 * row) * p.cols + column;
    to[at] = p.large_first ? large : small;
    to[at + part] = p.large_first ? small : large;
  }
}

constexpr int turn_rows = 64, turn_cols = 32;

// The same, with the result transposed: the parts lie side by side in rows that run down `from`.
__global__ void __launch_bounds__(256) turn_kernel(Split p) {
  __shared__ float tile[turn_rows][turn_cols + 1];
  const int64_t row0 = static_cast<int64_t>(blockIdx.x) * turn_rows;
  const int64_t col0 = static_cast<int64_t>(blockIdx.y) * turn_cols;
  const int x = static_cast<int>(threadIdx.x % 32), y = static_cast<int>(threadIdx.x / 32);
  const float* from = p.from + blockIdx.z * p.stride + col0 + x;
  float* to = p.to + static_cast<int64_t>(blockIdx.z) * 2 * p.rows * p.cols + row0;
  float read[turn_rows / 8];
#pragma unroll
  for (int i = 0; i < turn_rows / 8; ++i) {
    const int64_t row = row0 + y + 8 * i;
    read[i] = row < p.rows && col0 + x < p.cols ? from[row * p.leading] : 0;
  }
#pragma unroll
  for (int i = 0; i < turn_rows / 8; ++i) tile[y + 8 * i][x] = read[i];
  __syncthreads();
#pragma unroll
  for (int i = y; i < turn_cols; i += 8) {
    if (col0 + i >= p.cols) return;
#pragma unroll
    for (int r = x; r < turn_rows; r += 32) {
      if (row0 + r >= p.rows) continue;
      const float value = tile[r][i];
      const float large = to_tf32(value), small = to_tf32(value - large);
      const int64_t at = (col0 + i) * 2 * p.rows + r;
      to[at] = p.large_first ? large : small;
      to[at + p.rows] = p.large_first ? small : large;
    }
  }
}

}  // namespace

void split_operand(CudaStream& s, const Operand& from, int64_t rows, int64_t cols, int64_t batch,
                   SplitLayout layout, bool large_first, float* to) {
  const Split p{
      static_cast<const float*>(from.data), to,         rows, cols, from.leading, from.stride,
      layout == SplitLayout::below,         large_first};
  const auto matrices = static_cast<unsigned>(batch);
  if (layout == SplitLayout::turned) {
    const dim3 grid(static_cast<unsigned>(divide_up(rows, turn_rows)),
                    static_cast<unsigned>(divide_up(cols, turn_cols)), matrices);
    turn_kernel<<<grid, 256, 0, s.stream()>>>(p);
  } else {
    // A few rows a block, so that loads of several are on their way.
    const int64_t high = rows < 4 * 65535 ? divide_up(rows, 4) : 65535;
    const dim3 grid(static_cast<unsigned>(divide_up(cols, 256)), static_cast<unsigned>(high),
                    matrices);
    split_kernel<<<grid, 256, 0, s.stream()>>>(p);
  }
  CUDA_LAUNCHED();
}

SplitProblem split_problem(CudaStream& s, const MatMul& p) {
  const int64_t second = (2 * p.batch * p.rows * p.inner + 63) / 64 * 64;  // 256 bytes
  const int64_t elements = second + 2 * p.batch * p.inner * p.cols;
  auto* parts = static_cast<float*>(s.split_memory(static_cast<size_t>(elements) * sizeof(float)));
  SplitProblem q{p, p};
  q.small.inner = 2 * p.inner;
  q.small.split = q.large.split = true;
  q.small.epilogue = Epilogue::none;
  q.large.beta = 1;
  q.large.addend = nullptr;
  // Where `inner` runs down both operands as they are stored (a weight's gradient), TF32 products
  // are slow: there the parts are written transposed, which costs nothing more. Up to 2^20 columns.
  const bool turn = p.a.transposed && !p.b.transposed && std::max(p.rows, p.cols) < (1 << 20);
  const auto operand = [&](const Operand& o, int64_t rows, int64_t cols, bool is_b, float* to,
                           Operand* both, Operand* large) {
    // As stored: rows and columns of transposed operands are exchanged.
    const int64_t high = o.transposed ? cols : rows, wide = o.transposed ? rows : cols;
    const bool down = is_b != o.transposed;
    const SplitLayout layout = turn   ? SplitLayout::turned
                               : down ? SplitLayout::below
                                      : SplitLayout::beside;
    if (high > 0 && wide > 0) split_operand(s, o, high, wide, p.batch, layout, is_b, to);
    const int64_t leading = turn ? 2 * high : down ? wide : 2 * wide;
    *both = Operand{to, DType::f32, leading, 2 * rows * cols, o.transposed != turn};
    *large = *both;  // A's large part is the second, B's the first
    if (!is_b) large->data = to + (turn ? high : down ? high * wide : wide);
  };
  operand(p.a, p.rows, p.inner, false, parts, &q.small.a, &q.large.a);
  operand(p.b, p.inner, p.cols, true, parts + second, &q.small.b, &q.large.b);
  return q;
}

}  // namespace tally::train::cuda
