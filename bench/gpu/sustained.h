// Operands of random numbers, and the time of a call that is repeated until the GPU runs at the
// clock that its power allows.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <vector>

#include "src/device/arena.h"
#include "src/device/convert.h"
#include "src/device/events.h"

namespace tally::train {

constexpr double sustained_seconds = 0.25;  // a GPU at its power limit lowers its clock

class Bench {
 public:
  Bench(Stream& s, DType precision)
      : stream_(s), precision_(precision), arena_(s), events_(StreamEvents::make(s, 2)) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1);
    std::vector<float> values(size_t{1} << 22);
    for (float& v : values) v = normal(random);
    numbers_.resize(values.size());
    const auto count = static_cast<int64_t>(values.size());
    convert_elements(Tensor(values.data(), DType::f32, {count}),
                     Tensor(numbers_.data(), precision, {count}));
  }

  Tensor random(std::initializer_list<int64_t> shape) {
    const Tensor t = arena_.make(precision_, shape, "operand");
    const size_t block = numbers_.size() * sizeof(uint16_t);
    for (size_t at = 0; at < t.bytes(); at += block) {
      stream_.copy(static_cast<char*>(t.data) + at, numbers_.data(),
                   std::min(block, t.bytes() - at));
    }
    stream_.synchronize();
    return t;
  }
  Tensor plain(DType type, std::initializer_list<int64_t> shape) {
    const Tensor t = arena_.make(type, shape, "result");
    stream_.fill_zero(t.data, t.bytes());
    return t;
  }

  // Seconds per call, of calls that follow each other for sustained_seconds.
  double seconds(const std::function<void()>& work) {
    work();  // tunes
    const double once = time(work, 3);
    const int calls = static_cast<int>(std::clamp(sustained_seconds / once, 3.0, 5000.0));
    time(work, calls / 2 + 1);
    return time(work, calls);
  }

 private:
  double time(const std::function<void()>& work, int calls) {
    events_->record(0);
    for (int i = 0; i < calls; ++i) work();
    events_->record(1);
    events_->wait(1);
    return events_->seconds(0, 1) / calls;
  }

  Stream& stream_;
  const DType precision_;
  Arena arena_;
  std::unique_ptr<StreamEvents> events_;
  std::vector<uint16_t> numbers_;
};

}  // namespace tally::train
