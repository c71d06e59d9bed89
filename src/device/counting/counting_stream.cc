#include "src/device/counting/counting_stream.h"

#include <algorithm>

namespace tally::train {

CountedWork& CountedWork::operator+=(const CountedWork& other) {
  gemms += other.gemms;
  fp8_gemms += other.fp8_gemms;
  attention += other.attention;
  moved += other.moved;
  return *this;
}

CountedWork operator+(CountedWork a, const CountedWork& b) {
  return a += b;
}

CountedWork operator-(const CountedWork& a, const CountedWork& b) {
  return a + -1.0 * b;
}

CountedWork operator*(double times, const CountedWork& work) {
  return {times * work.gemms, times * work.fp8_gemms, times * work.attention, times * work.moved};
}

CountingStream::CountingStream(const CountedDevice& counted) : counted_(counted) {
  if (!counted.gpu) return;
  const size_t largest = ~size_t{0};
  const size_t memory = counted.memory > 0 ? static_cast<size_t>(counted.memory) : largest;
  allocate(gemm_workspace_bytes(memory), counting::gemm_scratch);
}

void* CountingStream::allocate(size_t bytes, const char* what) {
  if (main_) return main_->allocate(bytes, what);
  ++made_;
  // Addresses need not be as far apart as blocks are long. 0 is no memory, and the lowest ones are
  // no address of anything.
  void* data = reinterpret_cast<void*>(static_cast<uintptr_t>(made_) << 12U);
  const Block block{static_cast<double>(allocated_bytes(bytes)), what};
  blocks_[data] = block;
  by_use_[what] += block.bytes;
  held_ += block.bytes;
  peak_ = std::max(peak_, held_);
  return data;
}

void CountingStream::release(void* data) {
  if (main_) return main_->release(data);
  const auto it = blocks_.find(data);
  if (it == blocks_.end()) return;
  held_ -= it->second.bytes;
  by_use_[it->second.what] -= it->second.bytes;
  blocks_.erase(it);
}

double CountingStream::held(const std::string& what) const {
  const auto it = by_use_.find(what);
  return it == by_use_.end() ? 0 : it->second;
}

void CountingStream::need_split_memory(size_t bytes) {
  if (bytes <= split_bytes_) return;
  release(split_memory_);
  split_memory_ = allocate(bytes, counting::split_scratch);
  split_bytes_ = bytes;
}

namespace {

class CountingSideStream final : public SideStream {
 public:
  explicit CountingSideStream(CountingStream& main) : side_(&main) {}
  void launch(const std::function<void(Stream&)>& work) override { work(side_); }
  void wait() override {}

 private:
  CountingStream side_;
};

}  // namespace

std::unique_ptr<SideStream> counting::make_side_stream(Stream& stream) {
  return std::make_unique<CountingSideStream>(counting_stream(stream));
}

}  // namespace tally::train
