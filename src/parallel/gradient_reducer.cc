#include "src/parallel/gradient_reducer.h"

#include <algorithm>

namespace tally::train {
namespace {

// Parameters start at multiples of this; the gaps are zero and may be added as well.
constexpr int64_t alignment = 128;

}  // namespace

GradientReducer::GradientReducer(Communicator& communicator, Stream& stream,
                                 const Tensor& gradients, int64_t bucket)
    : communicator_(communicator), stream_(stream), gradients_(gradients), bucket_(bucket) {
  reduced_.reserve(256);
}

void GradientReducer::begin() {
  armed_ = communicator_.size() > 1 && bucket_ > 0;
  begin_ = end_ = 0;
  reduced_.clear();
}

void GradientReducer::ready(const Tensor& gradient) {
  if (!armed_) return;
  const auto offset = static_cast<const char*>(gradient.data) - static_cast<char*>(gradients_.data);
  const int64_t first = offset / static_cast<int64_t>(size_of(gradients_.dtype));
  const int64_t last = std::min((first + gradient.numel() + alignment - 1) / alignment * alignment,
                                gradients_.numel());
  // A backward pass goes down through the buffer.
  if (last == begin_ && begin_ < end_) {
    begin_ = first;
  } else {
    flush();
    begin_ = first;
    end_ = last;
  }
  if (end_ - begin_ >= bucket_) flush();
}

void GradientReducer::flush() {
  if (begin_ == end_) return;
  communicator_.start_all_reduce(stream_, range(begin_, end_));
  reduced_.emplace_back(begin_, end_);
  begin_ = end_ = 0;
}

Tensor GradientReducer::range(int64_t begin, int64_t end) const {
  return gradients_.rows(begin, end - begin);
}

void GradientReducer::finish() {
  if (communicator_.size() == 1) return;
  flush();
  std::sort(reduced_.begin(), reduced_.end());
  communicator_.begin_group();
  int64_t from = 0;
  for (const auto& [begin, end] : reduced_) {
    if (from < begin) communicator_.all_reduce(stream_, range(from, begin));
    from = end;
  }
  if (from < gradients_.numel()) communicator_.all_reduce(stream_, range(from, gradients_.numel()));
  communicator_.end_group();
  communicator_.join(stream_);
  armed_ = false;
  reduced_.clear();
}

}  // namespace tally::train
