#include "src/device/events.h"

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "src/device/devices.h"

namespace tally::train {
namespace {

// Work on the CPU is done when its call returns, so the host's clock is the device's.
class HostEvents final : public StreamEvents {
 public:
  explicit HostEvents(int count) : times_(static_cast<size_t>(count)) {}
  void record(int index) override {
    times_.at(static_cast<size_t>(index)) = std::chrono::steady_clock::now();
  }
  void wait(int) override {}
  double seconds(int from, int to) override {
    const std::chrono::duration<double> between =
        times_.at(static_cast<size_t>(to)) - times_.at(static_cast<size_t>(from));
    return between.count();
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> times_;
};

}  // namespace

std::unique_ptr<StreamEvents> StreamEvents::make(Stream& stream, int count) {
  if (stream.device().is_cuda()) return gpus()->make_events(stream, count);
  return std::make_unique<HostEvents>(count);
}

HostMemory::HostMemory(Stream& stream, size_t bytes) : page_locked_(stream.device().is_cuda()) {
  data_ = page_locked_ ? gpus()->allocate_host(bytes) : std::malloc(bytes);
  if (data_ == nullptr && bytes > 0)
    throw OutOfMemory(std::to_string(bytes) + " bytes of host memory could not be allocated");
}

HostMemory::~HostMemory() {
  page_locked_ ? gpus()->release_host(data_) : std::free(data_);
}

}  // namespace tally::train
