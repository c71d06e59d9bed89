#include "src/train/score/class_counts.h"

#include <algorithm>
#include <cmath>

#include "src/device/convert.h"

namespace tally::train {

std::vector<float> fetch_f32(const Tensor& t, Stream& stream) {
  std::vector<char> bytes(t.bytes());
  stream.copy(bytes.data(), t.data, bytes.size());
  stream.synchronize();
  std::vector<float> values(static_cast<size_t>(t.numel()));
  convert_elements(Tensor(bytes.data(), t.dtype, {t.numel()}),
                   Tensor(values.data(), DType::f32, {t.numel()}));
  return values;
}

std::vector<int32_t> greatest_of_rows(const std::vector<float>& values, int64_t columns) {
  std::vector<int32_t> indices;
  for (auto row = values.begin(); row != values.end(); row += columns)
    indices.push_back(static_cast<int32_t>(std::max_element(row, row + columns) - row));
  return indices;
}

std::vector<float> softmax_of_rows(const std::vector<float>& values, int64_t columns) {
  std::vector<float> scores(values.size());
  for (size_t row = 0; row < values.size(); row += static_cast<size_t>(columns)) {
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(row), last = first + columns;
    const double greatest = *std::max_element(first, last);
    double sum = 0;
    for (auto value = first; value != last; ++value) sum += std::exp(*value - greatest);
    std::transform(first, last, scores.begin() + static_cast<std::ptrdiff_t>(row),
                   [&](float v) { return static_cast<float>(std::exp(v - greatest) / sum); });
  }
  return scores;
}

void ClassCounts::add(const std::vector<int32_t>& predictions, const std::vector<int32_t>& of) {
  for (size_t k = 0; k < of.size(); ++k) {
    if (of[k] < 0) continue;
    ++labels;
    right += predictions[k] == of[k] ? 1 : 0;
  }
}

}  // namespace tally::train
