// float32 GEMMs on tensor cores with float32's accuracy: x = large + small with both parts TF32
// numbers (11 bits of mantissa each), and x y = small large + large small + large large. The
// term small small is left out, because it lies below float32's last bit.
#include <string>

#include "src/device/cuda/kernel.cuh"
#include "src/ops/gemm/gemm.h"
#include "src/ops/gemm/split_size.h"

namespace tally::train::cuda {
namespace {

// Rounds to the ten stored bits of TF32's mantissa, halves away from zero, as the hardware's own
// conversion does. Infinities and NaNs are preserved.
__device__ inline float to_tf32(float x) {
  const uint32_t bits = __float_as_uint(x);
  if ((bits & 0x7f800000U) == 0x7f800000U) return x;
  return __uint_as_float((bits + 0x1000U) & 0xffffe000U);
}

// One operand: rows x cols as stored, rows `leading` apart, matrices of a batch `stride` apart.
struct Split {
  const float* from;
  float* to;
  int64_t rows, cols, leading, stride;
  bool down, large_first;
  unsigned blocks;  // blocks that work on each matrix

  __device__ const float* matrix() const { return from + blockIdx.z * stride; }
  __device__ float* parts() const {
    return to + static_cast<int64_t>(blockIdx.z) * 2 * rows * cols;
  }
};
// Both operands of a GEMM in one launch: blockIdx.x counts a's blocks, then b's; blockIdx.z is the
// matrix of the batch.
struct SplitPair {
  Split operand[2];
};

constexpr int split_threads = 256, split_rounds = 4;

template <int N>
__device__ inline void split_vector(const Split& p, const Vector<float, N>& x, int64_t row,
                                    int64_t col) {
  Vector<float, N> large, small;
#pragma unroll
  for (int k = 0; k < N; ++k) {
    large.v[k] = to_tf32(x.v[k]);
    small.v[k] = to_tf32(x.v[k] - large.v[k]);
  }
  float* to = p.parts() + (p.down ? row : 2 * row) * p.cols + col;
  store<float, N>(to, p.large_first ? large : small);
  store<float, N>(to + (p.down ? p.rows * p.cols : p.cols), p.large_first ? small : large);
}

// N columns at a time; a matrix has at most 2^31 vectors.
template <int N>
__global__ void __launch_bounds__(split_threads)
    split_kernel(const __grid_constant__ SplitPair pair) {
  const unsigned which = blockIdx.x >= pair.operand[0].blocks ? 1 : 0;
  const Split& p = pair.operand[which];
  const unsigned block = blockIdx.x - which * pair.operand[0].blocks;
  const auto wide = static_cast<unsigned>(p.cols / N);
  const unsigned count = static_cast<unsigned>(p.rows) * wide;
  const unsigned first = block * (split_threads * split_rounds) + threadIdx.x;
  const float* from = p.matrix();
  Vector<float, N> x[split_rounds];
#pragma unroll
  for (int i = 0; i < split_rounds; ++i) {
    // Values are read from some valid address without a branch, so that all loads are in flight
    // together.
    const unsigned at = min(first + i * split_threads, count - 1);
    x[i] = load<float, N>(from + int64_t{at / wide} * p.leading + at % wide * N);
  }
#pragma unroll
  for (int i = 0; i < split_rounds; ++i) {
    const unsigned at = first + i * split_threads;
    if (at < count) split_vector<N>(p, x[i], at / wide, int64_t{at % wide} * N);
  }
}

constexpr int turn_rows = 64, turn_cols = 32;

// The same, with the result transposed: the parts lie side by side in rows that run down `from`.
__global__ void __launch_bounds__(256) turn_kernel(const __grid_constant__ SplitPair pair) {
  __shared__ float tile[turn_rows][turn_cols + 1];
  const unsigned which = blockIdx.x >= pair.operand[0].blocks ? 1 : 0;
  const Split& p = pair.operand[which];
  const unsigned block = blockIdx.x - which * pair.operand[0].blocks;
  const auto high = static_cast<unsigned>((p.rows + turn_rows - 1) / turn_rows);
  const int64_t row0 = int64_t{block % high} * turn_rows;
  const int64_t col0 = int64_t{block / high} * turn_cols;
  const int x = static_cast<int>(threadIdx.x % 32), y = static_cast<int>(threadIdx.x / 32);
  const float* from = p.matrix() + col0 + x;
  float* to = p.parts() + row0;
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

bool in_vectors(const Split& p) {
  return vectorizable<float>(p.cols, p.from, p.to) && p.leading % 4 == 0 && p.stride % 4 == 0;
}

unsigned blocks_of(const Split& p, bool turn, int width) {
  const int64_t vectors = p.rows * (p.cols / width);
  if (vectors > INT32_MAX) {
    throw DeviceError("GEMM in tf32x3: an operand of " + std::to_string(p.rows) + " x " +
                      std::to_string(p.cols) + " is too large");
  }
  return static_cast<unsigned>(turn ? divide_up(p.rows, turn_rows) * divide_up(p.cols, turn_cols)
                                    : divide_up(vectors, split_threads * split_rounds));
}

void split_both(CudaStream& s, SplitPair pair, int64_t batch, bool turn) {
  auto& [a, b] = pair.operand;
  const int width = in_vectors(a) && in_vectors(b) ? 4 : 1;
  a.blocks = blocks_of(a, turn, width);
  b.blocks = blocks_of(b, turn, width);
  const dim3 grid(a.blocks + b.blocks, 1, static_cast<unsigned>(batch));
  if (grid.x == 0) return;
  if (turn) {
    turn_kernel<<<grid, 256, 0, s.stream()>>>(pair);
  } else if (width == 4) {
    split_kernel<4><<<grid, split_threads, 0, s.stream()>>>(pair);
  } else {
    split_kernel<1><<<grid, split_threads, 0, s.stream()>>>(pair);
  }
  CUDA_LAUNCHED();
}

}  // namespace

SplitProblem split_problem(CudaStream& s, const GemmProblem& p) {
  const SplitSize size = split_size(p.batch, p.rows, p.cols, p.inner);
  auto* parts = static_cast<float*>(s.split_memory(static_cast<size_t>(size.all) * sizeof(float)));
  SplitProblem q{p, p};
  q.small.inner = 2 * p.inner;
  q.small.split = q.large.split = true;
  q.small.epilogue = Epilogue::none;
  q.large.beta = 1;
  q.large.addend = nullptr;
  // TF32 GEMMs are slow where `inner` runs down both operands as they are stored (a weight's
  // gradient). There the parts are written transposed, which costs nothing extra.
  const bool turn = p.a.transposed && !p.b.transposed;
  const auto operand = [&](const Operand& o, int64_t rows, int64_t cols, bool is_b, float* to,
                           Operand* both, Operand* large) {
    // Sizes as stored: rows and columns of transposed operands are exchanged.
    const int64_t high = o.transposed ? cols : rows, wide = o.transposed ? rows : cols;
    // The parts lie along `inner`: one below the other, or side by side in rows twice as long;
    // transposed, side by side.
    const bool down = is_b != o.transposed;
    const int64_t leading = turn ? 2 * high : down ? wide : 2 * wide;
    *both = Operand{to, DType::f32, leading, 2 * rows * cols, o.transposed != turn};
    *large = *both;  // A's large part is the second, B's the first
    if (!is_b) large->data = to + (turn ? high : down ? high * wide : wide);
    return Split{
        static_cast<const float*>(o.data), to, high, wide, o.leading, o.stride, down, is_b, 0};
  };
  const SplitPair pair{
      {operand(p.a, p.rows, p.inner, false, parts, &q.small.a, &q.large.a),
       operand(p.b, p.inner, p.cols, true, parts + size.second, &q.small.b, &q.large.b)}};
  split_both(s, pair, p.batch, turn);
  return q;
}

}  // namespace tally::train::cuda
