#include <algorithm>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/ops/embedding/backends.h"

namespace tally::train::cpu {
namespace {

// The row of the position table for token i.
int64_t position_of(const Tensor& positions, int64_t i, int64_t tokens) {
  return positions.defined() ? positions.as<int32_t>()[i] : i % tokens;
}

// The row of `table`, which begins at row `first` of the vocabulary, for an id; null: it has none.
template <typename T>
T* row_of(const Tensor& table, int64_t id, int64_t first, int64_t columns) {
  const int64_t row = id - first;
  return row < 0 || row >= table.dim(0) ? nullptr : table.as<T>() + row * columns;
}

}  // namespace

void embedding_forward(Stream&, const Tensor& ids, const Tensor& positions, const Tensor& wte,
                       const Tensor& wpe, double dropout, DropoutSeed seed, const Tensor& out,
                       VocabularyPart part) {
  with_type(out.dtype, "embedding_forward", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(out), tokens = ids.dim(-1);
    at::parallel_for(0, ids.numel(), 16, [&](int64_t begin, int64_t end) {
      std::vector<A> mask(static_cast<size_t>(columns), A(1));
      for (int64_t i = begin; i < end; ++i) {
        if (dropout > 0) {
          draw_mask(dropout, seed.get(), static_cast<uint64_t>(i * columns), columns, mask.data());
        }
        const T* token = row_of<T>(wte, ids.as<int32_t>()[i], part.first, columns);
        const T* position =
            wpe.defined() ? wpe.as<T>() + position_of(positions, i, tokens) * columns : nullptr;
        T* to = out.as<T>() + i * columns;
        for (int64_t j = 0; j < columns; ++j) {
          const A sum = (token ? static_cast<A>(token[j]) : A(0)) +
                        (position ? static_cast<A>(position[j]) : A(0));
          to[j] = static_cast<T>(sum * mask[j]);
        }
      }
    });
  });
}

void embedding_backward(Stream&, const Tensor& ids, const Tensor& positions, const Tensor& dout,
                        double dropout, DropoutSeed seed, const Tensor& dwte, const Tensor& dwpe,
                        const Tensor&, VocabularyPart part) {
  with_type(dout.dtype, "embedding_backward", [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(dout), tokens = ids.dim(-1);
    // Threads share the columns and take the tokens in order, so that additions have a fixed order.
    at::parallel_for(0, columns, 16, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      std::vector<A> mask(static_cast<size_t>(n), A(1));
      for (int64_t i = 0; i < ids.numel(); ++i) {
        const int64_t at = i * columns + begin;
        if (dropout > 0) draw_mask(dropout, seed.get(), static_cast<uint64_t>(at), n, mask.data());
        const T* from = dout.as<T>() + at;
        A* token = row_of<A>(dwte, ids.as<int32_t>()[i], part.first, columns);
        A* position = dwpe.defined()
                          ? dwpe.as<A>() + position_of(positions, i, tokens) * columns + begin
                          : nullptr;
        for (int64_t j = 0; j < n; ++j) {
          const A d = static_cast<A>(from[j]) * mask[j];
          if (token) token[begin + j] += d;
          if (position) position[j] += d;
        }
      }
    });
  });
}

size_t embedding_workspace(Stream&, int64_t, int64_t) {
  return 0;
}

}  // namespace tally::train::cpu
