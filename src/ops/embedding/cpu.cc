#include <algorithm>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/ops/embedding/embedding.h"

namespace tally::train::cpu {
namespace {

// The row of the position table for token i.
int64_t position_of(const In& positions, int64_t i, int64_t tokens) {
  return positions.defined() ? positions.as<int32_t>()[i] : i % tokens;
}

// The row of `table`, which begins at row `first` of the vocabulary, for an id; null: it has none.
template <typename T, typename Table>
auto* row_of(const Table& table, int64_t id, int64_t first, int64_t columns) {
  const int64_t row = id - first;
  return row < 0 || row >= table.dim(0) ? nullptr : table.template as<T>() + row * columns;
}

void forward(Stream&, EmbeddingIds in, EmbeddingTables tables, DropoutMask mask, Out out) {
  with_type(out.dtype, embedding_forward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(out), tokens = in.ids.dim(-1);
    at::parallel_for(0, in.ids.numel(), 16, [&](int64_t begin, int64_t end) {
      std::vector<A> factors(static_cast<size_t>(columns), A(1));
      for (int64_t i = begin; i < end; ++i) {
        if (mask.probability > 0) {
          draw_mask(mask.probability, mask.seed.get(), static_cast<uint64_t>(i * columns), columns,
                    factors.data());
        }
        const T* token = row_of<T>(tables.wte, in.ids.as<int32_t>()[i], in.part.first, columns);
        const T* position =
            tables.wpe.defined()
                ? tables.wpe.as<T>() + position_of(in.positions, i, tokens) * columns
                : nullptr;
        T* to = out.as<T>() + i * columns;
        for (int64_t j = 0; j < columns; ++j) {
          const A sum = (token ? static_cast<A>(token[j]) : A(0)) +
                        (position ? static_cast<A>(position[j]) : A(0));
          to[j] = static_cast<T>(sum * factors[j]);
        }
      }
    });
  });
}

void backward(Stream&, EmbeddingIds in, In dout, DropoutMask mask, EmbeddingGradients gradients) {
  with_type(dout.dtype, embedding_backward.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t columns = columns_of(dout), tokens = in.ids.dim(-1);
    // Threads share the columns and take the tokens in order, so that additions have a fixed order.
    at::parallel_for(0, columns, 16, [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      std::vector<A> factors(static_cast<size_t>(n), A(1));
      for (int64_t i = 0; i < in.ids.numel(); ++i) {
        const int64_t at = i * columns + begin;
        if (mask.probability > 0)
          draw_mask(mask.probability, mask.seed.get(), static_cast<uint64_t>(at), n,
                    factors.data());
        const T* from = dout.as<T>() + at;
        A* token = row_of<A>(gradients.dwte, in.ids.as<int32_t>()[i], in.part.first, columns);
        A* position =
            gradients.dwpe.defined()
                ? gradients.dwpe.as<A>() + position_of(in.positions, i, tokens) * columns + begin
                : nullptr;
        for (int64_t j = 0; j < n; ++j) {
          const A d = static_cast<A>(from[j]) * factors[j];
          if (token) token[begin + j] += d;
          if (position) position[j] += d;
        }
      }
    });
  });
}

const OnCpu versions[] = {{embedding_forward, forward}, {embedding_backward, backward}};

}  // namespace
}  // namespace tally::train::cpu
