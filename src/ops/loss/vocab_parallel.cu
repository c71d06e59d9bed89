// Vocabulary-parallel cross-entropy, one block a row: the sums of this process's columns, and the
// gradient from the sums of all processes.
#include "src/ops/loss/loss.h"
#include "src/ops/loss/softmax.cuh"

namespace tally::train::cuda {
namespace {

constexpr int loss_threads = 512;

// Whether the label's column is among these.
__device__ inline bool has(VocabularyColumns columns, int32_t label) {
  return label >= columns.first && label < columns.first + columns.count;
}

template <typename T, int N>
__global__ void __launch_bounds__(loss_threads)
    sums_kernel(const T* logits, const int32_t* labels, int64_t width, VocabularyColumns columns,
                Acc<T>* sums, int64_t rows) {
  using A = Acc<T>;
  __shared__ MaxSum<A> shared[32];
  const int64_t row = blockIdx.x;
  const T* x = logits + row * width;
  const MaxSum<A> all = block_max_sum<T>(
      max_sum_of<T, N>(x, threadIdx.x * N, loss_threads * N, columns.count), shared);
  if (threadIdx.x != 0) return;
  const int32_t label = labels[row];
  sums[row] = all.max;
  sums[rows + row] = all.sum;
  sums[2 * rows + row] = has(columns, label) ? widen(x[label - columns.first]) : A(0);
}

// Every thread joins the few sums by itself.
template <typename T, int N>
__global__ void __launch_bounds__(loss_threads)
    gradient_kernel(T* logits, const int32_t* labels, int64_t width, VocabularyColumns columns,
                    const Acc<T>* sums, int shards, int64_t rows, bool backward, LossFactor factor,
                    const StepState* state, Acc<T>* losses) {
  using A = Acc<T>;
  const int64_t row = blockIdx.x;
  const int32_t label = labels[row];
  MaxSum<A> all{A(-INFINITY), A(0)};
  A label_logit = 0;
  for (int s = 0; s < shards; ++s) {
    const A* part = sums + 3 * s * rows + row;
    all = merge<T>(all, MaxSum<A>{part[0], part[rows]});
    label_logit += part[2 * rows];
  }
  if (threadIdx.x == 0) losses[row] = label < 0 ? A(0) : log(all.sum) + all.max - label_logit;
  if (!backward) return;
  const A scale = label < 0 ? A(0) : A(factor.get()) * (state ? A(state->loss_scale) : A(1));
  const A share = label < 0 ? A(0) : scale / all.sum;
  T* x = logits + row * width;
  for (int64_t i = threadIdx.x * N; i < width; i += loss_threads * N) {
    Vector<T, N> v = load<T, N>(x + i);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      A g = 0;
      if (label >= 0 && i + k < columns.count) {
        g = fitting_exponential<T>(widen(v.v[k]) - all.max) * share -
            (i + k + columns.first == label ? scale : A(0));
      }
      v.v[k] = narrow<T>(g);
    }
    store<T, N>(x + i, v);
  }
}

// Calls work with T and the vector width that fits the logits.
template <typename Work>
void with_vectors(const In& logits, const char* name, const Work& work) {
  by_type(logits.dtype, name, [&](auto zero) {
    using T = decltype(zero);
    if (vectorizable<T>(logits.dim(-1), logits.as<T>())) {
      work(zero, std::integral_constant<int, vector_size<T>>{});
    } else {
      work(zero, std::integral_constant<int, 1>{});
    }
    CUDA_LAUNCHED();
  });
}

void sums(Stream& stream, In logits, PartLabels labels, Out to) {
  CudaStream& s = cuda_stream(stream);
  const int64_t rows = labels.labels.numel();
  if (rows == 0) return;
  with_vectors(logits, cross_entropy_sums.name(), [&](auto zero, auto width) {
    using T = decltype(zero);
    sums_kernel<T, decltype(width)::value>
        <<<static_cast<unsigned>(rows), loss_threads, 0, s.stream()>>>(
            logits.as<T>(), labels.labels.as<int32_t>(), logits.dim(-1), labels.columns,
            to.as<Acc<T>>(), rows);
  });
}

void from_sums(Stream& stream, const PartLogits& part, std::optional<LossGradient> gradient,
               Out losses) {
  CudaStream& s = cuda_stream(stream);
  const In& labels = part.labels.labels;
  const int64_t rows = labels.numel();
  if (rows == 0) return;
  const auto shards = static_cast<int>(part.all_sums.numel() / (3 * rows));
  const LossGradient g = gradient.value_or(LossGradient{1});
  with_vectors(part.logits, cross_entropy_from_sums.name(), [&](auto zero, auto width) {
    using T = decltype(zero);
    gradient_kernel<T, decltype(width)::value>
        <<<static_cast<unsigned>(rows), loss_threads, 0, s.stream()>>>(
            part.logits.as<T>(), labels.as<int32_t>(), part.logits.dim(-1), part.labels.columns,
            part.all_sums.as<Acc<T>>(), shards, rows, gradient.has_value(), g.factor, g.state,
            losses.as<Acc<T>>());
  });
}

const OnCuda versions[] = {{cross_entropy_sums, sums}, {cross_entropy_from_sums, from_sums}};

}  // namespace
}  // namespace tally::train::cuda
