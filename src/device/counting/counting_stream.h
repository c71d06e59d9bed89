// A device that computes nothing: it counts what the CPU or a GPU would allocate and do. Its memory
// has addresses alone, which nothing reads or writes. The planner runs a step's passes on it
// (src/plan/count.h), so that a plan is the model itself.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "src/device/side_stream.h"
#include "src/device/stream.h"

namespace tally::train {

// The device that is counted for.
struct CountedDevice {
  bool gpu = false;
  double memory = 0;    // bytes of the GPU; 0: not known
  int capability = 90;  // the GPU's
};

// The work of operations. They are doubles, because the numbers of a large step pass 2^63.
struct CountedWork {
  double gemms = 0;      // FLOPs of GEMMs, but for those below
  double fp8_gemms = 0;  // FLOPs of GEMMs with operands in FP8
  double attention = 0;  // FLOPs of attention, over the scores that its mask leaves
  double moved = 0;      // bytes that passes between the GEMMs read and write

  CountedWork& operator+=(const CountedWork& other);
};
CountedWork operator+(CountedWork a, const CountedWork& b);
CountedWork operator-(const CountedWork& a, const CountedWork& b);
CountedWork operator*(double times, const CountedWork& work);

class CountingStream final : public Stream {
 public:
  explicit CountingStream(const CountedDevice& counted);
  // A side stream of `main`: what it counts is main's, its scratch is its own.
  explicit CountingStream(CountingStream* main) : counted_(main->counted_), main_(main) {}

  Device device() const override { return {DeviceKind::counting, 0, counted_.gpu}; }
  void* native() const override { return nullptr; }
  void synchronize() override {}
  void copy(void*, const void*, size_t) override {}
  void fill_zero(void*, size_t bytes) override { count({.moved = static_cast<double>(bytes)}); }

  void* allocate(size_t bytes, const char* what) override;
  void release(void* data) override;
  int64_t allocations() const override { return made_; }
  size_t bytes_allocated() const override { return static_cast<size_t>(held_); }
  size_t bytes_peak() const override { return static_cast<size_t>(peak_); }

  // The same, and sizes that no machine has.
  double held() const { return held_; }
  // Bytes of what was called `what`.
  double held(const std::string& what) const;

  const CountedDevice& counted() const { return counted_; }
  void count(const CountedWork& work) { (main_ ? main_->work_ : work_) += work; }
  const CountedWork& work() const { return work_; }
  // A GPU's scratch for the split operands of a GEMM in tf32x3, which grows (CudaStream).
  void need_split_memory(size_t bytes);

 private:
  struct Block {
    double bytes;
    const char* what;
  };

  const CountedDevice counted_;
  CountingStream* const main_ = nullptr;
  CountedWork work_;
  int64_t made_ = 0;  // allocations
  std::unordered_map<void*, Block> blocks_;
  std::map<std::string, double> by_use_;
  double held_ = 0, peak_ = 0;
  void* split_memory_ = nullptr;
  size_t split_bytes_ = 0;
};

// `stream` is one.
inline CountingStream& counting_stream(Stream& s) {
  return static_cast<CountingStream&>(s);
}

namespace counting {

// The name of a GPU stream's scratch in CountingStream::held().
inline constexpr const char* gemm_scratch = "GEMM workspace";
inline constexpr const char* split_scratch = "operands split for tf32x3";

std::unique_ptr<SideStream> make_side_stream(Stream& stream);

}  // namespace counting
}  // namespace tally::train
