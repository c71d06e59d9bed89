// Events in a stream, timed by the device, and host memory that copies to and from the device need
// not wait for. With them a steady step runs without synchronising the host.
#pragma once

#include <cstddef>
#include <memory>

#include "src/device/stream.h"

namespace tally::train {

// A fixed number of events. Recording one again replaces the older one.
class StreamEvents {
 public:
  virtual ~StreamEvents() = default;
  // Enqueues event `index`.
  virtual void record(int index) = 0;
  // Returns when the device has reached event `index` (recorded before).
  virtual void wait(int index) = 0;
  // Seconds between two events that the device has reached, on the device's clock.
  virtual double seconds(int from, int to) = 0;

  static std::unique_ptr<StreamEvents> make(Stream& stream, int count);
};

// Pinned host memory for a GPU's stream, plain memory for the CPU's. Throws OutOfMemory.
class HostMemory {
 public:
  HostMemory(Stream& stream, size_t bytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  void* data() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  bool page_locked_;
  void* data_ = nullptr;
};

}  // namespace tally::train
