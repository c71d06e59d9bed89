#include <algorithm>
#include <cmath>
#include <limits>

#include "src/device/cpu/aten_views.h"
#include "src/ops/rows/rows.h"

namespace tally::train::cpu {
namespace {

// Calls work(k) for `rows` rows, shared among threads.
template <typename Work>
void for_rows(int64_t rows, const Work& work) {
  at::parallel_for(0, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) work(k);
  });
}

template <typename T>
void add_row(const T* from, int64_t columns, T* to) {
  using A = accumulate_t<T>;
  for (int64_t j = 0; j < columns; ++j)
    to[j] = static_cast<T>(static_cast<A>(to[j]) + static_cast<A>(from[j]));
}

// Calls work(i) for n elements, shared among threads.
template <typename Work>
void for_elements(int64_t n, const Work& work) {
  at::parallel_for(0, n, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) work(i);
  });
}

// Calls work(element of [K,B,T], element of [M,K]; -1: beyond the sequence's end).
template <typename Work>
void for_columns(const In& rows, const SequenceRows& s, const Work& work) {
  const int64_t columns = rows.dim(0), sequences = rows.dim(1), tokens = rows.dim(2);
  for (int64_t k = 0; k < columns; ++k) {
    for (int64_t b = 0; b < sequences; ++b) {
      const int64_t first = s.firsts.as<int32_t>()[b], length = s.lengths.as<int32_t>()[b];
      for (int64_t j = 0; j < tokens; ++j)
        work((k * sequences + b) * tokens + j, j < length ? (first + j) * columns + k : -1);
    }
  }
}

void gather(Stream&, In x, In rows, Out out) {
  const int64_t columns = columns_of(x);
  with_type(x.dtype, gather_rows.name(), [&]<typename T>() {
    for_rows(rows.numel(), [&](int64_t k) {
      const T* from = x.as<T>() + rows.as<int32_t>()[k] * columns;
      std::copy(from, from + columns, out.as<T>() + k * columns);
    });
  });
}

void add_to(Stream&, In x, In rows, Out out) {
  const int64_t columns = columns_of(x);
  with_type(x.dtype, add_to_rows.name(), [&]<typename T>() {
    for_rows(rows.numel(), [&](int64_t k) {
      add_row(x.as<T>() + k * columns, columns, out.as<T>() + rows.as<int32_t>()[k] * columns);
    });
  });
}

void add_table(Stream&, In ids, In table, Out x) {
  const int64_t columns = columns_of(x);
  with_type(x.dtype, add_embedding.name(), [&]<typename T>() {
    for_rows(ids.numel(), [&](int64_t i) {
      add_row(table.as<T>() + ids.as<int32_t>()[i] * columns, columns, x.as<T>() + i * columns);
    });
  });
}

void from_columns(Stream&, In x, SequenceRows sequences, Out out) {
  with_type(x.dtype, columns_to_rows.name(), [&]<typename T>() {
    const T nothing = static_cast<T>(-std::numeric_limits<float>::infinity());
    for_columns(out, sequences, [&](int64_t to, int64_t from) {
      out.as<T>()[to] = from < 0 ? nothing : x.as<T>()[from];
    });
  });
}

void to_columns(Stream& s, In g, SequenceRows sequences, Out dx) {
  s.fill_zero(dx.data, dx.bytes());
  with_type(g.dtype, rows_to_columns.name(), [&]<typename T>() {
    for_columns(g, sequences, [&](int64_t from, int64_t to) {
      if (to >= 0) dx.as<T>()[to] = g.as<T>()[from];
    });
  });
}

void scale(Stream&, In factors, Out x) {
  aten_matrix(x).mul_(aten_matrix(factors).view({-1, 1}));
}

void activate(Stream&, Activation kind, In x, Out y) {
  with_type(x.dtype, activation_forward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    for_elements(x.numel(), [&](int64_t i) {
      const A v = static_cast<A>(x.as<T>()[i]);
      y.as<T>()[i] = static_cast<T>(kind == Activation::tanh ? std::tanh(v) : std::max(v, A(0)));
    });
  });
}

void activate_backward(Stream&, Activation kind, In dy, In y, Out dx) {
  with_type(y.dtype, activation_backward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    for_elements(y.numel(), [&](int64_t i) {
      const A v = static_cast<A>(y.as<T>()[i]);
      const A slope = kind == Activation::tanh ? 1 - v * v : A(v > 0 ? 1 : 0);
      dx.as<T>()[i] = static_cast<T>(static_cast<A>(dy.as<T>()[i]) * slope);
    });
  });
}

const OnCpu rows_versions[] = {
    {gather_rows, gather},          {add_to_rows, add_to},
    {add_embedding, add_table},     {columns_to_rows, from_columns},
    {rows_to_columns, to_columns},  {scale_rows, scale},
    {activation_forward, activate}, {activation_backward, activate_backward}};

}  // namespace
}  // namespace tally::train::cpu
