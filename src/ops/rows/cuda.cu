// A thread moves one vector of a row.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/rows/backends.h"

namespace tally::train::cuda {
namespace {

constexpr int threads = 256;

// to[target(k)] = from[source(k)] (+ to[target(k)]) for `rows` rows of `vectors` vectors. A null
// list of rows: row k itself.
template <typename T, int N, bool add>
__global__ void move_rows_kernel(const T* from, const int32_t* source, T* to, const int32_t* target,
                                 int64_t rows, int64_t vectors) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= rows * vectors) return;
  const int64_t k = i / vectors, column = i % vectors * N, columns = vectors * N;
  Vector<T, N> x = load<T, N>(from + (source ? source[k] : k) * columns + column);
  T* const out = to + (target ? target[k] : k) * columns + column;
  if constexpr (add) {
    const Vector<T, N> before = load<T, N>(out);
#pragma unroll
    for (int j = 0; j < N; ++j) x.v[j] = narrow<T>(widen(before.v[j]) + widen(x.v[j]));
  }
  store<T, N>(out, x);
}

// Calls run with the C++ type and the number of elements a thread.
template <typename Run>
void by_width(const char* op, const Tensor& a, const Tensor& b, int64_t columns, const Run& run) {
  by_type(a.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    if (vectorizable<T>(columns, a.as<T>(), b.as<T>())) {
      run(zero, std::integral_constant<int, vector_size<T>>{});
    } else {
      run(zero, std::integral_constant<int, 1>{});
    }
    CUDA_LAUNCHED();
  });
}

template <bool add>
void move_rows(Stream& stream, const char* op, const Tensor& from, const Tensor& source,
               const Tensor& to, const Tensor& target) {
  CudaStream& s = cuda_stream(stream);
  const int64_t rows = source.defined() ? source.numel() : target.numel();
  const int64_t columns = from.dim(-1);
  if (rows == 0 || columns == 0) return;
  by_width(op, from, to, columns, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    const int64_t vectors = columns / N;
    move_rows_kernel<T, N, add>
        <<<static_cast<unsigned>(divide_up(rows * vectors, threads)), threads, 0, s.stream()>>>(
            from.as<T>(), source.as<int32_t>(), to.as<T>(), target.as<int32_t>(), rows, vectors);
  });
}

// Element [k,b,j] of rows and its place in columns[M,K]; see rows.h. `back`: from rows to columns.
template <typename T, bool back>
__global__ void columns_kernel(T* columns, T* rows, const int32_t* firsts, const int32_t* lengths,
                               int64_t k, int64_t sequences, int64_t tokens) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= k * sequences * tokens) return;
  const int64_t j = i % tokens, b = i / tokens % sequences, column = i / tokens / sequences;
  const bool inside = j < lengths[b];
  T* const at = columns + (firsts[b] + j) * k + column;
  if constexpr (back) {
    if (inside) *at = rows[i];
  } else {
    rows[i] = inside ? *at : narrow<T>(Acc<T>(-INFINITY));
  }
}

template <bool back>
void move_columns(CudaStream& s, const char* op, const Tensor& columns, const Tensor& rows,
                  const Tensor& firsts, const Tensor& lengths) {
  const int64_t count = rows.numel();
  if (count == 0) return;
  by_type(rows.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    columns_kernel<T, back>
        <<<static_cast<unsigned>(divide_up(count, threads)), threads, 0, s.stream()>>>(
            columns.as<T>(), rows.as<T>(), firsts.as<int32_t>(), lengths.as<int32_t>(), rows.dim(0),
            rows.dim(1), rows.dim(2));
    CUDA_LAUNCHED();
  });
}

template <typename T>
__device__ inline Acc<T> activated(Activation kind, Acc<T> v) {
  if (kind == Activation::tanh) return tanh(v);
  return v > 0 ? v : Acc<T>(0);
}
template <typename T>
__device__ inline Acc<T> slope_from_output(Activation kind, Acc<T> y) {
  if (kind == Activation::tanh) return 1 - y * y;
  return y > 0 ? 1 : 0;
}

// to = activation(from); with dy: to = dy * slope, from the output `from`.
template <typename T>
__global__ void activation_kernel(Activation kind, const T* from, const T* dy, T* to,
                                  int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Acc<T> v = widen(from[i]);
  to[i] = narrow<T>(dy ? widen(dy[i]) * slope_from_output<T>(kind, v) : activated<T>(kind, v));
}

void start_activation(Stream& stream, const char* op, Activation kind, const Tensor& from,
                      const Tensor& dy, const Tensor& to) {
  CudaStream& s = cuda_stream(stream);
  const int64_t count = from.numel();
  if (count == 0) return;
  by_type(from.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    activation_kernel<T>
        <<<static_cast<unsigned>(divide_up(count, threads)), threads, 0, s.stream()>>>(
            kind, from.as<T>(), dy.as<T>(), to.as<T>(), count);
    CUDA_LAUNCHED();
  });
}

}  // namespace

void gather_rows(Stream& s, const Tensor& x, const Tensor& rows, const Tensor& out) {
  move_rows<false>(s, __func__, x, rows, out, Tensor());
}

void add_to_rows(Stream& s, const Tensor& x, const Tensor& rows, const Tensor& out) {
  move_rows<true>(s, __func__, x, Tensor(), out, rows);
}

void add_embedding(Stream& s, const Tensor& ids, const Tensor& table, const Tensor& x) {
  move_rows<true>(s, __func__, table, ids, x, Tensor());
}

void columns_to_rows(Stream& s, const Tensor& x, const Tensor& firsts, const Tensor& lengths,
                     const Tensor& out) {
  move_columns<false>(cuda_stream(s), __func__, x, out, firsts, lengths);
}

void rows_to_columns(Stream& s, const Tensor& g, const Tensor& firsts, const Tensor& lengths,
                     const Tensor& dx) {
  s.fill_zero(dx.data, dx.bytes());
  move_columns<true>(cuda_stream(s), __func__, dx, g, firsts, lengths);
}

void activation_forward(Stream& s, Activation kind, const Tensor& x, const Tensor& y) {
  start_activation(s, __func__, kind, x, Tensor(), y);
}

void activation_backward(Stream& s, Activation kind, const Tensor& dy, const Tensor& y,
                         const Tensor& dx) {
  start_activation(s, __func__, kind, y, dy, dx);
}

}  // namespace tally::train::cuda
