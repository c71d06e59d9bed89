// The accuracy of a classifier, from its logits.
#pragma once

#include <cstdint>
#include <vector>

#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

// The host's copy of `t`, device memory of any type of numbers, as f32. Waits for the device.
std::vector<float> fetch_f32(const Tensor& t, Stream& stream);

// The index of the greatest in each row of `columns` values, the first of equals.
std::vector<int32_t> greatest_of_rows(const std::vector<float>& values, int64_t columns);

// The softmax of each row of `columns` values.
std::vector<float> softmax_of_rows(const std::vector<float>& values, int64_t columns);

// Labels that count (not negative), and predictions that are right.
struct ClassCounts {
  int64_t labels = 0, right = 0;
  void add(const std::vector<int32_t>& predictions, const std::vector<int32_t>& of);
};

}  // namespace tally::train
