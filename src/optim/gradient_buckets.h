// The gradients that are reduced together.
#pragma once

#include <cstdint>
#include <vector>

#include "src/nn/parameters.h"
#include "src/parallel/collectives/communicator.h"

namespace tally::train {

// Parameters whose gradients are reduced together, by their indices in ParameterTable::all(), and
// the elements of the flat buffer that they cover.
struct GradientBucket {
  std::vector<int> parameters;
  int64_t begin = 0, end = 0;
};

// Buckets of at least `elements` each (but the last), of the parameters in the order in which their
// gradients become final; none where `elements` is 0. A bucket's parameters are neighbours in the
// flat buffer and have the same Reduction; their new weights are gathered in the same type.
std::vector<GradientBucket> gradient_buckets(const ParameterTable& table,
                                             const std::vector<int>& final_order, int64_t elements);
// The `elements` of gradient_buckets() where buckets overlap with the backward pass.
inline constexpr int64_t overlapped_bucket = 25'000'000;
// The size where nobody asked for a number: 0 where messages are so fast that overlapping them
// costs more than it hides (Communicator::linked()), unless copy engines carry them.
int64_t usual_bucket(const Communicator& replicas);
// A bucket for every block (Parameter::block).
std::vector<GradientBucket> block_buckets(const ParameterTable& table,
                                          const std::vector<int>& final_order);

}  // namespace tally::train
