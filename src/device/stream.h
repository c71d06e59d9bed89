// A device and an ordered queue of work on it. On the CPU, work is done when the call returns; on a
// GPU it is enqueued.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "src/device/errors.h"
#include "src/device/tensor.h"

namespace tally::train {

// One queue of work. It cannot be copied and belongs to one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  // cudaStream_t, or null on the CPU.
  virtual void* native() const = 0;
  virtual void synchronize() = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // any direction, asynchronous
  virtual void fill_zero(void* data, size_t bytes) = 0;

  // Device memory, aligned to 256 bytes. Throws OutOfMemory. Only during set-up: a steady step
  // allocates nothing (asserted by a test through allocations()).
  virtual void* allocate(size_t bytes, const char* what) = 0;
  virtual void release(void* data) = 0;
  virtual int64_t allocations() const = 0;
  virtual size_t bytes_allocated() const = 0;  // now
  virtual size_t bytes_peak() const = 0;  // highest so far, libraries' own use included where known

  // Called once, before an autotune that takes long enough for a user to notice. May be empty.
  std::function<void()> on_long_autotune;
};

// The bytes that a device gives for an allocation of `bytes`.
constexpr size_t allocated_bytes(size_t bytes) {
  constexpr size_t alignment = 256;
  return std::max((bytes + alignment - 1) / alignment * alignment, alignment);
}

// A GPU's scratch for GEMMs. cuBLASLt's fastest algorithms for wide weight gradients split K and
// want room for it; measured best with 256 MiB on an H200. Small GPUs give up a 64th of their
// memory.
constexpr size_t gemm_workspace_bytes(size_t total_bytes) {
  return std::min(size_t{256} << 20, total_bytes / 64 / 256 * 256);
}

struct DeviceInfo {
  std::string name;    // "NVIDIA H200", or the processor's model name
  int capability = 0;  // 90 for compute capability 9.0; 0 on the CPU
  size_t total_bytes = 0;
  int sms = 0;                  // streaming multiprocessors of a GPU; cores of a CPU
  std::string driver, runtime;  // versions, empty on the CPU
};

// Number of usable GPUs; 0 without CUDA in the build, a driver or a device.
int cuda_device_count();
// The reason why there is none, in one sentence ("this build has no CUDA", "no NVIDIA driver is
// loaded"); else "".
std::string cuda_unavailable_reason();
DeviceInfo device_info(Device device);
// Throws DeviceError with one clear sentence when the device cannot be used (no GPU, a compute
// capability that this build has no code for).
std::unique_ptr<Stream> make_stream(Device device);
// Threads of operations on the CPU, for the whole process; 0 or less: one a core.
void set_threads(int threads);
// Restarts this program with GOMP_SPINCOUNT=3000 unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set.
// main() calls it first, before anything is opened or started. By default OpenMP's threads spin for
// about a millisecond before they sleep, and where other processes (tests, a laptop, a login node)
// use the same cores, a step takes tens of times longer. Threads that never spin make a small
// model's step four times as long on idle cores. Measured (2 cores, 2 layers of 64, batch 8 x 128;
// seconds a step, idle and next to six busy loops and a writer): 0.030 and 3.9 by default, 0.030
// and 0.9 with 3000, 0.14 and 0.15 without spinning. OpenMP reads the variable when the program is
// loaded, so only a restart can set it.
void restart_with_brief_spinning(char** argv);

}  // namespace tally::train
