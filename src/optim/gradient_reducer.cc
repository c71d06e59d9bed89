#include "src/optim/gradient_reducer.h"

#include <algorithm>
#include <numeric>

namespace tally::train {

std::vector<GradientBucket> gradient_buckets(const ParameterTable& table,
                                             const std::vector<int>& final_order,
                                             int64_t elements) {
  std::vector<GradientBucket> buckets;
  if (elements <= 0) return buckets;
  for (const int id : final_order) {
    const Parameter& p = table.all()[static_cast<size_t>(id)];
    // The gaps between parameters are zero and may be added as well.
    const int64_t begin = p.offset;
    const int64_t end = std::min(table.elements(),
                                 begin + (p.local_elements() + ParameterTable::alignment - 1) /
                                             ParameterTable::alignment * ParameterTable::alignment);
    const bool full = !buckets.empty() && buckets.back().end - buckets.back().begin >= elements;
    // A backward pass goes down through the buffer.
    if (buckets.empty() || full || buckets.back().begin != end) {
      buckets.push_back({{id}, begin, end});
    } else {
      buckets.back().parameters.push_back(id);
      buckets.back().begin = begin;
    }
  }
  return buckets;
}

GradientReducer::GradientReducer(Communicator& communicator, Stream& stream,
                                 const ParameterTable& table, std::vector<GradientBucket> buckets)
    : communicator_(communicator),
      stream_(stream),
      gradients_(table.gradients()),
      buckets_(std::move(buckets)),
      bucket_of_(table.all().size(), -1),
      by_place_(buckets_.size()),
      progress_(buckets_.size()) {
  for (size_t b = 0; b < buckets_.size(); ++b)
    for (const int id : buckets_[b].parameters)
      bucket_of_[static_cast<size_t>(id)] = static_cast<int>(b);
  std::iota(by_place_.begin(), by_place_.end(), size_t{0});
  std::sort(by_place_.begin(), by_place_.end(),
            [&](size_t a, size_t b) { return buckets_[a].begin < buckets_[b].begin; });
}

void GradientReducer::begin() {
  armed_ = communicator_.size() > 1;
  for (size_t b = 0; b < buckets_.size(); ++b)
    progress_[b] = {buckets_[b].parameters.size(), false};
}

void GradientReducer::ready(int parameter) {
  const int b = bucket_of_[static_cast<size_t>(parameter)];
  if (!armed_ || b < 0) return;
  Progress& progress = progress_[static_cast<size_t>(b)];
  if (--progress.missing > 0) return;
  const GradientBucket& bucket = buckets_[static_cast<size_t>(b)];
  communicator_.start_all_reduce(stream_, gradients_.rows(bucket.begin, bucket.end - bucket.begin));
  progress.reduced = true;
}

void GradientReducer::finish() {
  if (communicator_.size() == 1) return;
  communicator_.begin_group();
  int64_t from = 0;
  const auto reduce_up_to = [&](int64_t to) {
    if (from < to) communicator_.all_reduce(stream_, gradients_.rows(from, to - from));
  };
  for (const size_t b : by_place_) {
    if (!progress_[b].reduced) continue;
    reduce_up_to(buckets_[b].begin);
    from = buckets_[b].end;
  }
  reduce_up_to(gradients_.numel());
  communicator_.end_group();
  communicator_.wait(stream_);
  armed_ = false;
  for (Progress& progress : progress_) progress.reduced = false;
}

}  // namespace tally::train
