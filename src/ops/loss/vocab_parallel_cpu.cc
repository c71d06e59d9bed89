#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/device/cpu/types.h"
#include "src/ops/loss/loss.h"

namespace tally::train::cpu {
namespace {

// Whether the label's column is among these.
bool has(VocabularyColumns columns, int32_t label) {
  return label >= columns.first && label < columns.first + columns.count;
}

// The sums of a row over all processes.
template <typename A>
struct RowSums {
  A largest, sum, label;
};
template <typename A>
RowSums<A> join(const A* sums, int64_t shards, int64_t rows, int64_t row) {
  const auto at = [&](int64_t shard, int64_t which) {
    return sums[(3 * shard + which) * rows + row];
  };
  RowSums<A> all{at(0, 0), 0, 0};
  for (int64_t s = 1; s < shards; ++s) all.largest = std::max(all.largest, at(s, 0));
  for (int64_t s = 0; s < shards; ++s) {
    // A process without columns has the sum 0, and the difference of infinities is a NaN.
    if (at(s, 1) != 0) all.sum += at(s, 1) * std::exp(at(s, 0) - all.largest);
    all.label += at(s, 2);
  }
  return all;
}

void sums(Stream&, In logits, PartLabels labels, Out to) {
  const VocabularyColumns columns = labels.columns;
  with_type(logits.dtype, cross_entropy_sums.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t width = columns_of(logits), rows = labels.labels.numel();
    A* const out = to.as<A>();
    at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T* row = logits.as<T>() + i * width;
        const int32_t label = labels.labels.as<int32_t>()[i];
        A largest = -std::numeric_limits<A>::infinity(), sum = 0;
        for (int64_t j = 0; j < columns.count; ++j)
          largest = std::max(largest, static_cast<A>(row[j]));
        for (int64_t j = 0; j < columns.count; ++j)
          sum += std::exp(static_cast<A>(row[j]) - largest);
        out[i] = largest;
        out[rows + i] = sum;
        out[2 * rows + i] = has(columns, label) ? static_cast<A>(row[label - columns.first]) : A(0);
      }
    });
  });
}

void from_sums(Stream&, const PartLogits& part, std::optional<LossGradient> gradient, Out losses) {
  const Out& logits = part.logits;
  const In& labels = part.labels.labels;
  const VocabularyColumns columns = part.labels.columns;
  const bool backward = gradient.has_value();
  double scale = 0;
  if (backward)
    scale = gradient->factor.get() *
            (gradient->state ? static_cast<double>(gradient->state->loss_scale) : 1.0);
  with_type(logits.dtype, cross_entropy_from_sums.name(), [&]<typename T>() {
    using A = accumulate_t<T>;
    const int64_t width = columns_of(logits), rows = labels.numel();
    const int64_t shards = part.all_sums.numel() / (3 * rows);
    at::parallel_for(0, rows, 4, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* row = logits.as<T>() + i * width;
        const int32_t label = labels.as<int32_t>()[i];
        const RowSums<A> all = join(part.all_sums.as<A>(), shards, rows, i);
        losses.as<A>()[i] = label < 0 ? A(0) : std::log(all.sum) + all.largest - all.label;
        if (!backward) continue;
        if (label < 0) {
          std::fill(row, row + width, T(0));
          continue;
        }
        const A share = static_cast<A>(scale) / all.sum;
        for (int64_t j = 0; j < columns.count; ++j) {
          const A p = std::exp(static_cast<A>(row[j]) - all.largest) * share;
          row[j] = static_cast<T>(j + columns.first == label ? p - static_cast<A>(scale) : p);
        }
        std::fill(row + columns.count, row + width, T(0));
      }
    });
  });
}

const OnCpu versions[] = {{cross_entropy_sums, sums}, {cross_entropy_from_sums, from_sums}};

}  // namespace
}  // namespace tally::train::cpu
