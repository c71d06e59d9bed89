// A sample source whose samples are known by their number.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/data/tokens/dataset.h"

// Sample n is n, n, n, ...
class Numbers final : public tally::train::SampleSource {
 public:
  explicit Numbers(int64_t sequence, int64_t samples = 1000)
      : tokens_(sequence + 1), samples_(samples) {}
  int64_t samples_per_epoch() const override { return samples_; }
  void sample(int64_t index, int32_t* out) const override {
    std::fill(out, out + tokens_, static_cast<int32_t>(index));
  }

 private:
  int64_t tokens_, samples_;
};
