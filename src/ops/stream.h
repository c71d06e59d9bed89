// Where operations run: a device and an ordered queue on it. On the CPU everything is done when the
// call returns; on a GPU it is enqueued.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "src/ops/errors.h"
#include "src/ops/tensor.h"

namespace tally::train {

// How float32 matrix products are computed: in ieee float32; from operands rounded to TF32; or from
// operands split into two TF32 numbers each, of whose four products the three large ones are added
// up (Ootomo & Yokota 2022, "Recovering single precision accuracy from Tensor Cores").
enum class MatmulMode : uint8_t { ieee, tf32, tf32x3 };

// One queue of work. Copying is not possible; each belongs to one thread at a time.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Device device() const = 0;
  // cudaStream_t, or null on the CPU.
  virtual void* native() const = 0;
  virtual void synchronize() = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;  // any direction, asynchronous
  virtual void fill_zero(void* data, size_t bytes) = 0;
  MatmulMode matmul_mode = MatmulMode::ieee;
  // Attention of f32 takes three TF32 products, whatever matmul_mode is (GPUs, where a kernel
  // serves).
  bool three_tf32_attention = false;
  // GELU within the MLP's products where the device has kernels for it; false: a pass of its own.
  bool fused_gelu = true;
  // Products with a bias may be kernels of our own, where timing says so; false: the library's.
  bool own_bias_products = true;
  // Products of float32 (MatmulMode::ieee) may run on float64 tensor cores where timing says so:
  // sums in float64, rounded once. Those within attention do wherever there are any: sums in
  // float64 within a block of keys or queries, the blocks' added in float32. false: float32
  // multiply-adds throughout.
  bool float64_products = true;
  // Attention of 16-bit types may be our own kernels; false: the library's where it serves.
  bool own_attention = true;
  // Multiprocessors that matrix products leave to work on another queue; 0: none. Products in 16
  // bits and those on float64 tensor cores heed it; attention does not.
  int products_leave = 0;
  // Results repeat bit for bit from run to run: algorithms by rule instead of by timing, no atomic
  // sums.
  bool deterministic = false;

  // Called once, before algorithms are timed for so long that a user would wonder. May be empty.
  std::function<void()> before_long_tuning;

  // Device memory, aligned to 256 bytes. Throws OutOfMemory. Only during set-up: a steady step
  // allocates nothing (asserted by a test through allocations()).
  virtual void* allocate(size_t bytes, const char* what) = 0;
  virtual void release(void* data) = 0;
  virtual int64_t allocations() const = 0;
  virtual size_t bytes_allocated() const = 0;  // now
  virtual size_t bytes_peak() const = 0;  // highest so far, libraries' own use included where known
};

struct DeviceInfo {
  std::string name;    // "NVIDIA H200", or the processor's model name
  int capability = 0;  // 90 for compute capability 9.0; 0 on the CPU
  size_t total_bytes = 0;
  int multiprocessors = 0;
  std::string driver, runtime;  // versions, empty on the CPU
};

// Number of usable GPUs; 0 without CUDA in the build, a driver or a device.
int cuda_device_count();
// Why there is none, in one sentence ("this build has no CUDA", "no NVIDIA driver is loaded"); else
// "".
std::string cuda_unavailable_reason();
DeviceInfo device_info(Device device);
// Throws DeviceError with one clear sentence when the device cannot be used (no GPU, a compute
// capability that this build has no code for).
std::unique_ptr<Stream> make_stream(Device device);
// Threads that operations on the CPU use, in the whole process; 0 or less: one a core.
void set_threads(int threads);
// For the program's start, before it has opened or begun anything: unless OMP_WAIT_POLICY or
// GOMP_SPINCOUNT is set, starts this program again with GOMP_SPINCOUNT=3000. By itself OpenMP's
// threads spin for about a millisecond before they sleep, and where cores are shared with other
// processes (tests, a laptop, a login node) a step takes tens of times longer. Those that never
// spin make a small model's step four times as long on cores of its own. Measured (2 cores, 2
// layers of 64, batch 8 x 128; seconds a step, idle and beside six busy loops and a writer): 0.030
// and 3.9 as it is, 0.030 and 0.9 with 3000, 0.14 and 0.15 without spinning. The variable is read
// when the program is loaded, so that only a new start can set it.
void restart_with_brief_spinning(char** argv);

}  // namespace tally::train
