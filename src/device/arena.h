// Memory of one owner on one stream, released together.
#pragma once

#include <initializer_list>
#include <vector>

#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

class Arena {
 public:
  explicit Arena(Stream& stream) : stream_(stream) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (void* block : blocks_) stream_.release(block);
  }

  Tensor make(DType type, std::initializer_list<int64_t> shape, const char* what) {
    Tensor t(nullptr, type, shape);
    if (t.bytes() == 0) return t;
    t.data = stream_.allocate(t.bytes(), what);
    blocks_.push_back(t.data);
    bytes_ += t.bytes();
    return t;
  }
  size_t bytes() const { return bytes_; }

 private:
  Stream& stream_;
  std::vector<void*> blocks_;
  size_t bytes_ = 0;
};

}  // namespace tally::train
