// Softmax cross-entropy, one block a row. Rows of 16-bit logits that fit are kept in shared memory,
// so that they are read once and written once. For other rows one pass finds maximum and sum
// together, and a second one, served by L2, writes the gradient over the logits.
#include <cuda_pipeline.h>

#include "src/device/cuda/ptx.cuh"
#include "src/ops/loss/loss.h"
#include "src/ops/loss/softmax.cuh"

namespace tally::train::cuda {
namespace {

constexpr int loss_threads = 1024;

template <typename T, int N>
__global__ void __launch_bounds__(loss_threads)
    cross_entropy_kernel(T* logits, const int32_t* labels, void* losses, bool losses_f64,
                         int64_t vocabulary, int64_t padded, bool backward, LossFactor factor,
                         const StepState* state) {
  using A = Acc<T>;
  __shared__ MaxSum<A> shared[32];
  const int64_t row = blockIdx.x;
  T* x = logits + row * padded;
  const int32_t label = labels[row];
  MaxSum<A> mine{A(-INFINITY), A(0)};
  if (label >= 0) {
    mine = block_max_sum<T>(max_sum_of<T, N>(x, threadIdx.x * N, loss_threads * N, vocabulary),
                            shared);
  }
  if (threadIdx.x == 0) {
    const A loss = label >= 0 ? log(mine.sum) + mine.max - widen(x[label]) : A(0);
    if (losses_f64) {
      static_cast<double*>(losses)[row] = loss;
    } else {
      static_cast<float*>(losses)[row] = static_cast<float>(loss);
    }
  }
  if (!backward) return;
  __syncthreads();  // the label's logit has been read
  const A scale = label >= 0 ? A(factor.get()) * (state ? A(state->loss_scale) : A(1)) : A(0);
  const A inverse = label >= 0 ? A(1) / mine.sum : A(0);
  // The walk begins at the end of the row, which was read last and is most likely still in a cache.
  const int64_t rounds = (padded + loss_threads * N - 1) / (loss_threads * N);
  for (int64_t round = rounds - 1; round >= 0; --round) {
    const int64_t i = (round * loss_threads + threadIdx.x) * N;
    if (i >= padded) continue;
    Vector<T, N> v = load<T, N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      A p = A(0);
      if (label >= 0 && i + k < vocabulary) {
        p = fitting_exponential<T>(widen(v.v[k]) - mine.max) * inverse -
            (i + k == label ? A(1) : A(0));
      }
      v.v[k] = narrow<T>(p * scale);
    }
    store<T, N>(x + i, v);
  }
}

constexpr int shared_threads = 512;

template <typename T>
struct PairOf;
template <>
struct PairOf<__nv_bfloat16> {
  using type = __nv_bfloat162;
};
template <>
struct PairOf<__half> {
  using type = __half2;
};
template <typename T>
using Pair = typename PairOf<T>::type;

// The values at k and k + 1; k is even.
template <typename T, int N>
__device__ inline Pair<T> pair_at(const Vector<T, N>& v, int k) {
  return {v.v[k], v.v[k + 1]};
}

// A row in shared memory. Each thread works on the vectors that it copied itself; only the two
// reductions need the block. T has 16 bits and rows are whole vectors.
template <typename T>
struct SharedRow {
  static constexpr int N = vector_size<T>, step = shared_threads * N;
  T* values;
  int vocabulary, padded;

  __device__ static int first() { return static_cast<int>(threadIdx.x) * N; }
  __device__ static bool is_mine(int column) {
    return column / N % shared_threads == static_cast<int>(threadIdx.x);
  }

  // Returns when this thread's vectors have arrived.
  __device__ void copy_from(const T* x) const {
    for (int i = first(); i < padded; i += step) __pipeline_memcpy_async(values + i, x + i, 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }

  // The largest of this thread's values. Columns past the vocabulary become -infinity, which
  // adds nothing to the sum and has gradient 0, so the later passes need not check indices.
  __device__ float top() const {
    Pair<T> tops{narrow<T>(-INFINITY), narrow<T>(-INFINITY)};
    for (int i = first(); i < padded; i += step) {
      Vector<T, N> v = load<T, N>(values + i);
      if (i + N > vocabulary) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          if (i + k >= vocabulary) v.v[k] = narrow<T>(-INFINITY);
        }
        store<T, N>(values + i, v);
      }
#pragma unroll
      for (int k = 0; k < N; k += 2) tops = __hmax2(tops, pair_at(v, k));
    }
    return fmaxf(widen(tops.x), widen(tops.y));
  }

  // The sum of 2^(log2(e) x + shift) over this thread's values.
  __device__ float sum(float shift) const {
    float sum = 0;
    for (int i = first(); i < padded; i += step) {
      float value[N];
      widen(load<T, N>(values + i), value);
#pragma unroll
      for (int k = 0; k < N; ++k) sum += exp2_fast(fmaf(value[k], log2_e, shift));
    }
    return sum;
  }

  // Writes share 2^(log2(e) x + shift), less scale at the label.
  __device__ void write_gradient(T* to, float shift, float share, float scale, int label) const {
    for (int i = first(); i < padded; i += step) {
      float value[N];
      widen(load<T, N>(values + i), value);
      Vector<T, N> gradient;
#pragma unroll
      for (int k = 0; k < N; ++k)
        gradient.v[k] = narrow<T>(exp2_fast(fmaf(value[k], log2_e, shift)) * share);
      store<T, N>(to + i, gradient);
    }
    // The thread that wrote the label's gradient corrects it.
    if (is_mine(label)) {
      const float p = exp2_fast(fmaf(widen(values[label]), log2_e, shift));
      to[label] = narrow<T>(p * share - scale);
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(shared_threads, 2)
    cross_entropy_shared_kernel(T* logits, const int32_t* labels, float* losses, int vocabulary,
                                int padded, bool backward, LossFactor factor,
                                const StepState* state) {
  using Row = SharedRow<T>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ float shared[64];
  const Row row{reinterpret_cast<T*>(memory), vocabulary, padded};
  T* x = logits + static_cast<int64_t>(blockIdx.x) * padded;
  const int label = labels[blockIdx.x];
  if (label < 0) {
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    Vector<T, Row::N> none;
#pragma unroll
    for (int k = 0; k < Row::N; ++k) none.v[k] = narrow<T>(0.0F);
    for (int i = Row::first(); backward && i < padded; i += Row::step)
      store<T, Row::N>(x + i, none);
    return;
  }
  const float label_logit = threadIdx.x == 0 ? widen(x[label]) : 0.0F;
  row.copy_from(x);
  float top = warp_max(row.top());
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) shared[warp] = top;
  __syncthreads();
  top = warp_max(lane < shared_threads / 32 ? shared[lane] : -INFINITY);
  const float shift = -top * log2_e;
  const float sum = block_sum(row.sum(shift), shared);
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + top - label_logit;
  if (!backward) return;
  const float scale = static_cast<float>(factor.get()) * (state ? state->loss_scale : 1.0F);
  row.write_gradient(x, shift, scale / sum, scale, label);
}

// False where a row does not fit shared memory.
template <typename T>
bool start_shared(CudaStream& s, const Out& logits, const Labels& labels,
                  const std::optional<LossGradient>& gradient, const Out& losses) {
  int most = 0;
  CUDA_CHECK(
      cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, s.device().index));
  const int64_t padded = logits.dim(-1), bytes = padded * static_cast<int64_t>(sizeof(T));
  if (bytes + 1024 > most || losses.dtype != DType::f32) return false;
  CUDA_CHECK(cudaFuncSetAttribute(cross_entropy_shared_kernel<T>,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)));
  const LossGradient g = gradient.value_or(LossGradient{1});
  cross_entropy_shared_kernel<T>
      <<<static_cast<unsigned>(labels.labels.numel()), shared_threads, static_cast<size_t>(bytes),
         s.stream()>>>(logits.as<T>(), labels.labels.as<int32_t>(), losses.as<float>(),
                       static_cast<int>(labels.vocabulary), static_cast<int>(padded),
                       gradient.has_value(), g.factor, g.state);
  CUDA_LAUNCHED();
  return true;
}

template <typename T>
__global__ void __launch_bounds__(1024)
    add_losses_kernel(const T* losses, int64_t count, LossFactor factor, double* sum) {
  __shared__ double shared[64];
  double all = 0;
  for (int64_t i = threadIdx.x; i < count; i += blockDim.x) all += losses[i];
  all = block_sum(all, shared);
  if (threadIdx.x == 0) *sum += factor.get() * all;
}

constexpr int correct_threads = 256;

// Counts are whole numbers, so that their sum does not depend on the order.
template <typename T>
__global__ void __launch_bounds__(correct_threads)
    add_correct_kernel(const T* logits, const int32_t* labels, int64_t vocabulary, int64_t padded,
                       double* correct) {
  const int64_t row = blockIdx.x;
  const int32_t label = labels[row];
  if (label < 0) return;
  const T* x = logits + row * padded;
  const auto own = widen(x[label]);
  bool largest = true;
  for (int64_t j = threadIdx.x; j < vocabulary; j += correct_threads) {
    const auto other = widen(x[j]);
    largest = largest && (other < own || (other == own && j >= label));
  }
  if (__syncthreads_and(largest) && threadIdx.x == 0) atomicAdd(correct, 1.0);
}

void loss(Stream& stream, Out logits, Labels labels, std::optional<LossGradient> gradient,
          Out losses) {
  CudaStream& s = cuda_stream(stream);
  const int64_t padded = logits.dim(-1), rows = labels.labels.numel();
  if (rows == 0) return;
  const bool losses_f64 = losses.dtype == DType::f64;
  const LossGradient g = gradient.value_or(LossGradient{1});
  by_type(logits.dtype, cross_entropy.name(), [&](auto zero) {
    using T = decltype(zero);
    const auto start = [&](auto width) {
      constexpr int N = decltype(width)::value;
      cross_entropy_kernel<T, N><<<static_cast<unsigned>(rows), loss_threads, 0, s.stream()>>>(
          logits.as<T>(), labels.labels.as<int32_t>(), losses.data, losses_f64, labels.vocabulary,
          padded, gradient.has_value(), g.factor, g.state);
    };
    if (vectorizable<T>(padded, logits.as<T>())) {
      if constexpr (sizeof(T) == 2) {
        if (start_shared<T>(s, logits, labels, gradient, losses)) return;
      }
      start(std::integral_constant<int, vector_size<T>>{});
    } else {
      start(std::integral_constant<int, 1>{});
    }
    CUDA_LAUNCHED();
  });
}

void add(Stream& stream, In losses, LossFactor factor, double* sum) {
  CudaStream& s = cuda_stream(stream);
  if (losses.dtype == DType::f64) {
    add_losses_kernel<<<1, 1024, 0, s.stream()>>>(losses.as<double>(), losses.numel(), factor, sum);
  } else {
    add_losses_kernel<<<1, 1024, 0, s.stream()>>>(losses.as<float>(), losses.numel(), factor, sum);
  }
  CUDA_LAUNCHED();
}

void count_correct(Stream& stream, In logits, Labels labels, double* correct) {
  CudaStream& s = cuda_stream(stream);
  const int64_t padded = logits.dim(-1), rows = labels.labels.numel();
  if (rows == 0) return;
  by_type(logits.dtype, add_correct.name(), [&](auto zero) {
    using T = decltype(zero);
    add_correct_kernel<T><<<static_cast<unsigned>(rows), correct_threads, 0, s.stream()>>>(
        logits.as<T>(), labels.labels.as<int32_t>(), labels.vocabulary, padded, correct);
  });
  CUDA_LAUNCHED();
}

const OnCuda versions[] = {{cross_entropy, loss}, {add_losses, add}, {add_correct, count_correct}};

}  // namespace
}  // namespace tally::train::cuda
