// GELU and bias, forward and backward, and sums over rows: bandwidth-bound kernels between GEMMs.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/linear/passes.h"

namespace tally::train::cuda {
namespace {

// gelu(v) = 0.5 v (1 + tanh(u)) with u = sqrt(2/pi) (v + 0.044715 v^3). 0.5 (1 + tanh(u)) is the
// logistic function of 2u, which is accurate for negative v.
__device__ inline float exponential(float x, float) {
  return expf(x);
}
__device__ inline double exponential(double x, double) {
  return exp(x);
}
__device__ inline float exponential(float x, __nv_bfloat16) {
  return __expf(x);
}
__device__ inline float exponential(float x, __half) {
  return __expf(x);
}

template <typename T>
__device__ inline Acc<T> reciprocal(Acc<T> x) {
  if constexpr (sizeof(T) == 2) return __fdividef(1.0F, x);
  return Acc<T>(1) / x;
}

template <typename T>
__device__ inline Acc<T> logistic_of_2u(Acc<T> v) {
  using A = Acc<T>;
  constexpr A scale = A(1.5957691216057307117597842397375);  // 2 sqrt(2/pi)
  const A two_u = scale * (v + A(0.044715) * v * v * v);
  return reciprocal<T>(A(1) + exponential(-two_u, T{}));
}
template <typename T>
__device__ inline Acc<T> gelu_of(Acc<T> v) {
  return v * logistic_of_2u<T>(v);
}
template <typename T>
__device__ inline Acc<T> gelu_derivative(Acc<T> v) {
  using A = Acc<T>;
  const A p = logistic_of_2u<T>(v);
  const A derivative_of_2u =
      A(1.5957691216057307117597842397375) * (A(1) + A(3 * 0.044715) * v * v);
  return p + v * p * (A(1) - p) * derivative_of_2u;
}

// gelu(v) = v Phi(v) and Phi(v) + v phi(v). erfc keeps the relative accuracy of Phi for negative v.
__device__ inline float normal_distribution(float v) {
  return 0.5F * erfcf(v * -0.70710678118654752F);
}
__device__ inline double normal_distribution(double v) {
  return 0.5 * erfc(v * -0.70710678118654752440);
}
template <typename T>
__device__ inline Acc<T> erf_gelu_of(Acc<T> v) {
  return v * normal_distribution(v);
}
template <typename T>
__device__ inline Acc<T> erf_gelu_derivative(Acc<T> v) {
  using A = Acc<T>;
  constexpr A density = A(0.39894228040143267793994605993438);  // 1 / sqrt(2 pi)
  return normal_distribution(v) + v * density * exponential(A(-0.5) * v * v, T{});
}

// Without GELU, or with what was saved of it, see SavedGelu: its input (of each GeluKind), or its
// derivative, whose backward pass does not depend on the kind.
enum class Gelu { none, input, derivative, erf_input, erf_derivative };
constexpr bool saves_derivative(Gelu g) {
  return g == Gelu::derivative || g == Gelu::erf_derivative;
}
constexpr bool is_erf(Gelu g) {
  return g == Gelu::erf_input || g == Gelu::erf_derivative;
}

template <typename T, Gelu with>
__device__ inline Acc<T> value_of(Acc<T> v) {
  return is_erf(with) ? erf_gelu_of<T>(v) : gelu_of<T>(v);
}
template <typename T, Gelu with>
__device__ inline Acc<T> derivative_of(Acc<T> v) {
  return is_erf(with) ? erf_gelu_derivative<T>(v) : gelu_derivative<T>(v);
}

template <typename T, int N, Gelu with>
__global__ void bias_gelu_kernel(const T* bias, T* pre, T* y, int64_t count, int64_t columns) {
  const int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (i >= count) return;
  Vector<T, N> x = load<T, N>(pre + i);
  if (bias) {
    const Vector<T, N> b = load<T, N>(bias + i % columns);
#pragma unroll
    for (int k = 0; k < N; ++k) x.v[k] = narrow<T>(widen(x.v[k]) + widen(b.v[k]));
    store<T, N>(pre + i, x);
  }
  if constexpr (with != Gelu::none) {
    Vector<T, N> out;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      out.v[k] = narrow<T>(value_of<T, with>(widen(x.v[k])));
      if (saves_derivative(with)) x.v[k] = narrow<T>(derivative_of<T, with>(widen(x.v[k])));
    }
    store<T, N>(y + i, out);
    if (saves_derivative(with)) store<T, N>(pre + i, x);
  }
}

constexpr int sum_rows = 8;  // rows that a block works on at a time; each row has 32 threads

// parts[blockIdx.y, column] = sum of this block's rows of dy gelu'(v), which is also written to
// dpre; `pre`: what was saved of v. Without GELU: of dy itself, nothing written. `stride`: elements
// between rows.
template <typename T, int N, Gelu with>
__global__ void __launch_bounds__(32 * sum_rows)
    sum_kernel(const T* dy, const T* pre, T* dpre, Acc<T>* parts, int64_t rows, int64_t columns,
               int64_t stride, int64_t rows_per_block) {
  using A = Acc<T>;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x) * N;
  const int64_t first = blockIdx.y * rows_per_block;
  const int64_t last = first + rows_per_block < rows ? first + rows_per_block : rows;
  A sums[N] = {};
  // All loads of a few rows come before the first store: the output may be one of the inputs, so
  // the compiler must keep their order.
  constexpr int deep = with == Gelu::none ? 4 : 2;
  for (int64_t row = first + threadIdx.y; column < columns && row < last; row += deep * sum_rows) {
    Vector<T, N> g[deep], x[deep];
#pragma unroll
    for (int d = 0; d < deep; ++d) {
      const int64_t at = row + d * sum_rows;
      if (at >= last) continue;
      g[d] = load<T, N>(dy + at * stride + column);
      if (with != Gelu::none) x[d] = load<T, N>(pre + at * stride + column);
    }
#pragma unroll
    for (int d = 0; d < deep; ++d) {
      const int64_t at = row + d * sum_rows;
      if (at >= last) continue;
      if (with != Gelu::none) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const A saved = widen(x[d].v[k]);
          g[d].v[k] = narrow<T>(widen(g[d].v[k]) *
                                (saves_derivative(with) ? saved : derivative_of<T, with>(saved)));
        }
        store<T, N>(dpre + at * stride + column, g[d]);
      }
#pragma unroll
      for (int k = 0; k < N; ++k) sums[k] += widen(g[d].v[k]);
    }
  }
  if (!parts) return;
  __shared__ A shared[sum_rows][32 * N + 1];
#pragma unroll
  for (int k = 0; k < N; ++k) shared[threadIdx.y][threadIdx.x * N + k] = sums[k];
  __syncthreads();
  const int thread = threadIdx.y * 32 + threadIdx.x;
  for (int c = thread; c < 32 * N; c += 32 * sum_rows) {
    const int64_t out = static_cast<int64_t>(blockIdx.x) * 32 * N + c;
    if (out >= columns) continue;
    A sum = 0;
    for (int r = 0; r < sum_rows; ++r) sum += shared[r][c];
    parts[blockIdx.y * columns + out] = sum;
  }
}

// A block of 32 x 32 threads adds up 32 columns of one array of parts (blockIdx.y).
template <typename A>
__global__ void __launch_bounds__(1024)
    add_parts_kernel(const A* parts, int64_t count, int64_t elements, A* first, A* second,
                     A* third) {
  __shared__ A shared[32][33];
  parts += blockIdx.y * count * elements;
  A* out = blockIdx.y == 0 ? first : blockIdx.y == 1 ? second : third;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  A sum = 0;
  if (column < elements) {
#pragma unroll 8
    for (int64_t p = threadIdx.y; p < count; p += 32) sum += parts[p * elements + column];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(shared[threadIdx.x][threadIdx.y]);
  const int64_t target = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.y;
  if (threadIdx.x == 0 && target < elements) out[target] += sum;
}

template <typename T, Gelu with>
void launch_bias_gelu(CudaStream& s, const Tensor& b, const Tensor& pre, const Tensor& y) {
  const int64_t count = pre.numel(), columns = pre.dim(-1);
  if (count == 0) return;
  constexpr int N = vector_size<T>;
  if (vectorizable<T>(columns, b.as<T>(), pre.as<T>(), y.as<T>())) {
    const auto blocks = static_cast<unsigned>(divide_up(count / N, 256));
    bias_gelu_kernel<T, N, with>
        <<<blocks, 256, 0, s.stream()>>>(b.as<T>(), pre.as<T>(), y.as<T>(), count, columns);
  } else {
    const auto blocks = static_cast<unsigned>(divide_up(count, 256));
    bias_gelu_kernel<T, 1, with>
        <<<blocks, 256, 0, s.stream()>>>(b.as<T>(), pre.as<T>(), y.as<T>(), count, columns);
  }
  CUDA_LAUNCHED();
}

// Columns [first, first + columns) of dy.
struct Columns {
  int64_t first, columns;
};

template <typename T, int N, Gelu with>
void launch_sum(CudaStream& s, const Tensor& dy, const Tensor& pre, const Tensor& dpre,
                const Columns& range, const Tensor& db) {
  using A = Acc<T>;
  const int64_t stride = dy.dim(-1), rows = stride ? dy.numel() / stride : 0;
  const int64_t columns = range.columns;
  if (rows == 0 || columns == 0) return;
  const int64_t across = divide_up(columns, 32 * N);
  // One full wave of blocks, at least 32 rows each, and parts that fit the workspace.
  int64_t down = resident_blocks(s, sum_kernel<T, N, with>, 32 * sum_rows) / across;
  down = down > 1 ? down : 1;
  down = down < divide_up(rows, 32) ? down : divide_up(rows, 32);
  const auto room = static_cast<int64_t>(s.workspace_bytes() / sizeof(A)) / columns;
  down = down < room ? down : room;
  if (down < 1)
    throw DeviceError("column sums: rows of " + std::to_string(columns) + " are too long");
  const int64_t rows_per_block = divide_up(rows, down);
  down = divide_up(rows, rows_per_block);
  A* parts = db.defined() ? static_cast<A*>(s.workspace()) : nullptr;
  const dim3 grid(static_cast<unsigned>(across), static_cast<unsigned>(down));
  sum_kernel<T, N, with><<<grid, dim3(32, sum_rows), 0, s.stream()>>>(
      dy.as<T>() + range.first, pre.as<T>(), dpre.as<T>(), parts, rows, columns, stride,
      rows_per_block);
  CUDA_LAUNCHED();
  if (db.defined()) add_parts(s, parts, down, columns, db);
}

template <Gelu with>
void sum_by_type(CudaStream& s, const char* op, const Tensor& dy, const Tensor& pre,
                 const Tensor& dpre, const Columns& range, const Tensor& db) {
  by_type(dy.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    if (vectorizable<T>(dy.dim(-1), dy.as<T>(), pre.as<T>(), dpre.as<T>()) &&
        range.first % vector_size<T> == 0 && range.columns % vector_size<T> == 0) {
      launch_sum<T, vector_size<T>, with>(s, dy, pre, dpre, range, db);
    } else {
      launch_sum<T, 1, with>(s, dy, pre, dpre, range, db);
    }
  });
}

// A block adds sums[N] times 32 columns of w[N,K] to 32 elements of `out` (null: none), and as many
// elements of sums to `db`.
template <typename T>
__global__ void __launch_bounds__(1024)
    row_times_matrix_kernel(const Acc<T>* sums, const T* w, Acc<T>* db, Acc<T>* out, int64_t n,
                            int64_t k) {
  using A = Acc<T>;
  __shared__ A shared[32][33];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  A sum = 0;
  if (out && column < k) {
#pragma unroll 8
    for (int64_t i = threadIdx.y; i < n; i += 32) sum += sums[i] * widen(w[i * k + column]);
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(shared[threadIdx.x][threadIdx.y]);
  const int64_t target = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.y;
  if (threadIdx.x == 0 && out && target < k) out[target] += sum;
  if (threadIdx.y == 0 && column < n) db[column] += sums[column];
}

// x[i] *= factors[i], rows of `vectors` vectors of N.
template <typename T, int N>
__global__ void scale_rows_kernel(const Acc<T>* factors, T* x, int64_t count, int64_t vectors) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Acc<T> factor = factors[i / vectors];
  Vector<T, N> v = load<T, N>(x + i * N);
#pragma unroll
  for (int k = 0; k < N; ++k) v.v[k] = narrow<T>(widen(v.v[k]) * factor);
  store<T, N>(x + i * N, v);
}

}  // namespace

void add_bias(CudaStream& s, const Tensor& b, const Tensor& y) {
  by_type(y.dtype, __func__,
          [&](auto zero) { launch_bias_gelu<decltype(zero), Gelu::none>(s, b, y, Tensor()); });
}

void gelu(CudaStream& s, const Tensor& b, const Tensor& pre, const Tensor& y, SavedGelu form,
          GeluKind kind) {
  const bool derivative = form == SavedGelu::derivative;
  by_type(y.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    if (kind == GeluKind::erf) {
      derivative ? launch_bias_gelu<T, Gelu::erf_derivative>(s, b, pre, y)
                 : launch_bias_gelu<T, Gelu::erf_input>(s, b, pre, y);
    } else {
      derivative ? launch_bias_gelu<T, Gelu::derivative>(s, b, pre, y)
                 : launch_bias_gelu<T, Gelu::input>(s, b, pre, y);
    }
  });
}

void gelu_gradient(CudaStream& s, const Tensor& dy, const Tensor& saved, const Tensor& dpre,
                   const Tensor& db, SavedGelu form, GeluKind kind) {
  const Columns all{0, dy.dim(-1)};
  if (form == SavedGelu::derivative) {
    sum_by_type<Gelu::derivative>(s, __func__, dy, saved, dpre, all, db);
  } else if (kind == GeluKind::erf) {
    sum_by_type<Gelu::erf_input>(s, __func__, dy, saved, dpre, all, db);
  } else {
    sum_by_type<Gelu::input>(s, __func__, dy, saved, dpre, all, db);
  }
}

void column_sums(CudaStream& s, const Tensor& dy, int64_t first, const Tensor& db) {
  sum_by_type<Gelu::none>(s, __func__, dy, Tensor(), Tensor(), {first, db.numel()}, db);
}

void row_times_matrix(CudaStream& s, const Tensor& sums, const Tensor& w, const Tensor& db,
                      const Tensor& out) {
  const int64_t n = w.dim(0), k = w.dim(1);
  const auto blocks = static_cast<unsigned>(divide_up(n > k ? n : k, 32));
  by_type(w.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    using A = Acc<T>;
    row_times_matrix_kernel<T><<<blocks, dim3(32, 32), 0, s.stream()>>>(
        sums.as<A>(), w.as<T>(), db.as<A>(), out.as<A>(), n, k);
    CUDA_LAUNCHED();
  });
}

void scale_rows(Stream& stream, const Tensor& factors, const Tensor& x) {
  CudaStream& s = cuda_stream(stream);
  if (x.numel() == 0) return;
  by_type(x.dtype, __func__, [&](auto zero) {
    using T = decltype(zero);
    const auto with = [&](auto width) {
      constexpr int N = decltype(width)::value;
      const int64_t count = x.numel() / N;
      scale_rows_kernel<T, N><<<static_cast<unsigned>(divide_up(count, 256)), 256, 0, s.stream()>>>(
          factors.as<Acc<T>>(), x.as<T>(), count, x.dim(-1) / N);
      CUDA_LAUNCHED();
    };
    if (vectorizable<T>(x.dim(-1), x.as<T>())) {
      with(std::integral_constant<int, vector_size<T>>{});
    } else {
      with(std::integral_constant<int, 1>{});
    }
  });
}

void add_parts(CudaStream& s, const void* parts, int64_t count, int64_t elements,
               const Tensor& first, const Tensor& second, const Tensor& third) {
  if (elements == 0 || count == 0) return;
  const unsigned arrays = third.defined() ? 3 : second.defined() ? 2 : 1;
  const dim3 grid(static_cast<unsigned>(divide_up(elements, 32)), arrays);
  if (first.dtype == DType::f64) {
    add_parts_kernel<<<grid, dim3(32, 32), 0, s.stream()>>>(
        static_cast<const double*>(parts), count, elements, first.as<double>(), second.as<double>(),
        third.as<double>());
  } else {
    add_parts_kernel<<<grid, dim3(32, 32), 0, s.stream()>>>(static_cast<const float*>(parts), count,
                                                            elements, first.as<float>(),
                                                            second.as<float>(), third.as<float>());
  }
  CUDA_LAUNCHED();
}

}  // namespace tally::train::cuda
