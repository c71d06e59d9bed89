// Which gradients are reduced together.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/parameters.h"

namespace tally::train {

// Parameters whose gradients are reduced together, by their places in ParameterTable::all(), and
// the elements of the flat buffer that they cover.
struct GradientBucket {
  std::vector<int> parameters;
  int64_t begin = 0, end = 0;
};

// Buckets of at least `elements` each (but the last), of the parameters in the order in which their
// gradients become final; none where `elements` is 0. A bucket's parameters are neighbours in the
// flat buffer.
std::vector<GradientBucket> gradient_buckets(const ParameterTable& table,
                                             const std::vector<int>& final_order, int64_t elements);
// The `elements` of gradient_buckets() where nobody asked for a number: 0 where messages are so fast
// that overlapping them costs more than it hides (`linked`, see Communicator::linked()).
int64_t usual_bucket(bool linked);
// A bucket for every block (Parameter::block).
std::vector<GradientBucket> block_buckets(const ParameterTable& table,
                                          const std::vector<int>& final_order);

}  // namespace tally::train
