// A thread moves one vector of a row.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/rows/rows.h"

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
void by_width(const char* op, const In& a, const In& b, int64_t columns, const Run& run) {
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

// Rows of a matrix: those of a list, or without one all of them.
template <typename Matrix>
struct RowsOf {
  Matrix matrix;
  In list;
};

template <bool add>
void move_rows(CudaStream& s, const char* op, const RowsOf<In>& from, const RowsOf<Out>& to) {
  const In &source = from.list, &target = to.list;
  const int64_t rows = source.defined() ? source.numel() : target.numel();
  const int64_t columns = from.matrix.dim(-1);
  if (rows == 0 || columns == 0) return;
  by_width(op, from.matrix, to.matrix, columns, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    const int64_t vectors = columns / N;
    move_rows_kernel<T, N, add>
        <<<static_cast<unsigned>(divide_up(rows * vectors, threads)), threads, 0, s.stream()>>>(
            from.matrix.as<T>(), source.as<int32_t>(), to.matrix.as<T>(), target.as<int32_t>(),
            rows, vectors);
  });
}

template <typename T, bool constant>
using MaybeConst = std::conditional_t<constant, const T, T>;

// Element [k,b,j] of rows and its offset in columns[M,K]; see rows.h. `back`: from rows to columns.
template <typename T, bool back>
__global__ void columns_kernel(MaybeConst<T, !back>* columns, MaybeConst<T, back>* rows,
                               const int32_t* firsts, const int32_t* lengths, int64_t k,
                               int64_t sequences, int64_t tokens) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= k * sequences * tokens) return;
  const int64_t j = i % tokens, b = i / tokens % sequences, column = i / tokens / sequences;
  const bool inside = j < lengths[b];
  auto* const at = columns + (firsts[b] + j) * k + column;
  if constexpr (back) {
    if (inside) *at = rows[i];
  } else {
    rows[i] = inside ? *at : narrow<T>(Acc<T>(-INFINITY));
  }
}

template <typename T, bool back>
void move_columns(CudaStream& s, MaybeConst<T, !back>* columns, MaybeConst<T, back>* rows,
                  const In& shape, const SequenceRows& of) {
  const int64_t count = shape.numel();
  if (count == 0) return;
  columns_kernel<T, back>
      <<<static_cast<unsigned>(divide_up(count, threads)), threads, 0, s.stream()>>>(
          columns, rows, of.firsts.as<int32_t>(), of.lengths.as<int32_t>(), shape.dim(0),
          shape.dim(1), shape.dim(2));
  CUDA_LAUNCHED();
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

struct ActivationOperands {
  In from, dy;
  Out to;
};
void start_activation(Stream& stream, const char* op, Activation kind,
                      const ActivationOperands& o) {
  CudaStream& s = cuda_stream(stream);
  const int64_t count = o.from.numel();
  if (count == 0) return;
  by_type(o.from.dtype, op, [&](auto zero) {
    using T = decltype(zero);
    activation_kernel<T>
        <<<static_cast<unsigned>(divide_up(count, threads)), threads, 0, s.stream()>>>(
            kind, o.from.as<T>(), o.dy.as<T>(), o.to.as<T>(), count);
    CUDA_LAUNCHED();
  });
}

void gather(Stream& s, In x, In rows, Out out) {
  move_rows<false>(cuda_stream(s), gather_rows.name(), {x, rows}, {out, {}});
}

void add_to(Stream& s, In x, In rows, Out out) {
  move_rows<true>(cuda_stream(s), add_to_rows.name(), {x, {}}, {out, rows});
}

void add_table(Stream& s, In ids, In table, Out x) {
  move_rows<true>(cuda_stream(s), add_embedding.name(), {table, ids}, {x, {}});
}

void from_columns(Stream& s, In x, SequenceRows sequences, Out out) {
  by_type(out.dtype, columns_to_rows.name(), [&](auto zero) {
    using T = decltype(zero);
    move_columns<T, false>(cuda_stream(s), x.as<T>(), out.as<T>(), out, sequences);
  });
}

void to_columns(Stream& s, In g, SequenceRows sequences, Out dx) {
  s.fill_zero(dx.data, dx.bytes());
  by_type(g.dtype, rows_to_columns.name(), [&](auto zero) {
    using T = decltype(zero);
    move_columns<T, true>(cuda_stream(s), dx.as<T>(), g.as<T>(), g, sequences);
  });
}

void scale(Stream& stream, In factors, Out x) {
  CudaStream& s = cuda_stream(stream);
  const int64_t columns = x.dim(-1);
  if (x.numel() == 0) return;
  by_width(scale_rows.name(), x, {}, columns, [&](auto zero, auto width) {
    using T = decltype(zero);
    constexpr int N = decltype(width)::value;
    const int64_t count = x.numel() / N;
    scale_rows_kernel<T, N><<<static_cast<unsigned>(divide_up(count, 256)), 256, 0, s.stream()>>>(
        factors.as<Acc<T>>(), x.as<T>(), count, columns / N);
  });
}

void activate(Stream& s, Activation kind, In x, Out y) {
  start_activation(s, activation_forward.name(), kind, {x, {}, y});
}

void activate_backward(Stream& s, Activation kind, In dy, In y, Out dx) {
  start_activation(s, activation_backward.name(), kind, {y, dy, dx});
}

const OnCuda versions[] = {
    {gather_rows, gather},          {add_to_rows, add_to},
    {add_embedding, add_table},     {columns_to_rows, from_columns},
    {rows_to_columns, to_columns},  {scale_rows, scale},
    {activation_forward, activate}, {activation_backward, activate_backward}};

}  // namespace
}  // namespace tally::train::cuda
