#include "src/optim/gradient_buckets.h"

namespace tally::train {
namespace {

// Whether one message can have the gradients of both parameters, and one their new weights.
bool together(const ParameterTable& table, const Parameter& a, const Parameter& b) {
  return a.reduction == b.reduction && table.gathered_in_fp8(a) == table.gathered_in_fp8(b);
}

// `closed(bucket, parameter)`: the bucket does not take the parameter.
template <typename Closed>
std::vector<GradientBucket> buckets_of(const ParameterTable& table,
                                       const std::vector<int>& final_order, const Closed& closed) {
  std::vector<GradientBucket> buckets;
  for (const int id : final_order) {
    const Parameter& p = table.all()[static_cast<size_t>(id)];
    // The gaps between parameters are zero and may be added as well.
    const int64_t begin = p.offset, end = table.end_of(p);
    // A backward pass goes down through the buffer.
    if (buckets.empty() || closed(buckets.back(), p) || buckets.back().begin != end ||
        !together(table, table.all()[static_cast<size_t>(buckets.back().parameters.back())], p)) {
      buckets.push_back({{id}, begin, end});
    } else {
      buckets.back().parameters.push_back(id);
      buckets.back().begin = begin;
    }
  }
  return buckets;
}

}  // namespace

int64_t usual_bucket(const Communicator& replicas) {
  return replicas.linked() && !replicas.uses_copy_engines() ? 0 : overlapped_bucket;
}

std::vector<GradientBucket> gradient_buckets(const ParameterTable& table,
                                             const std::vector<int>& final_order,
                                             int64_t elements) {
  if (elements <= 0) return {};
  return buckets_of(table, final_order, [&](const GradientBucket& bucket, const Parameter&) {
    return bucket.end - bucket.begin >= elements;
  });
}

std::vector<GradientBucket> block_buckets(const ParameterTable& table,
                                          const std::vector<int>& final_order) {
  return buckets_of(table, final_order, [&](const GradientBucket& bucket, const Parameter& p) {
    return table.all()[static_cast<size_t>(bucket.parameters.back())].block != p.block;
  });
}

}  // namespace tally::train
