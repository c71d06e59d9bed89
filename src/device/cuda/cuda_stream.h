// The Stream of one GPU: its CUDA stream, library handle, scratch memory and state of operations.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <typeindex>
#include <unordered_map>

#include "src/device/compute_options.h"
#include "src/device/stream.h"

namespace tally::train::cuda {

class CudaStream final : public Stream {
 public:
  // Throws DeviceError when the GPU cannot be used, see make_stream().
  explicit CudaStream(int index);
  // A side stream of `main`'s GPU for GEMMs: it shares main's state(), what it allocates counts as
  // main's, and its scratch grows with the first calls. `main` is not null and outlives it.
  explicit CudaStream(CudaStream* main);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  Device device() const override { return {DeviceKind::cuda, index_}; }
  void* native() const override { return stream_; }
  void synchronize() override;
  void copy(void* to, const void* from, size_t bytes) override;
  void fill_zero(void* data, size_t bytes) override;
  void* allocate(size_t bytes, const char* what) override;
  void release(void* data) override;
  int64_t allocations() const override { return allocations_; }
  size_t bytes_allocated() const override { return allocated_; }
  size_t bytes_peak() const override { return peak_; }

  cudaStream_t stream() const { return stream_; }
  int capability() const { return capability_; }  // 90 for compute capability 9.0
  int sms() const { return sms_; }
  size_t shared_bytes_a_block() const { return shared_bytes_; }  // the most a kernel can ask for
  bool capturing() const;

  // Scratch for one operation: the next call of any operation overwrites it. Fixed size, part of
  // bytes_allocated().
  void* workspace() const { return workspace_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  // Scratch of at least `bytes` for a GEMM whose algorithm needs it. A side stream's scratch grows,
  // and throws DeviceError when it would have to grow during a recording.
  void* gemm_workspace(size_t bytes);
  // Flags for GEMMs, at least `bytes`; GEMMs find all of them zero and leave them zero. Throws
  // DeviceError when they would have to be allocated during a recording.
  void* gemm_flags(size_t bytes);
  // The stream on which algorithms are timed: the one with the largest workspace that a GEMM may
  // have. A side stream borrows main's, which must be idle.
  CudaStream& tuning() { return main_ ? *main_ : *this; }
  // Calls main's on_long_autotune, once.
  void announce_long_autotune();
  // A second scratch for operations that also call cuBLASLt (which uses the first). Allocated at
  // the first call; throws DeviceError during a recording.
  void* second_workspace();
  size_t second_workspace_bytes() const;

  // Memory for the split operands of tf32x3 GEMMs: grows at the first calls of a shape, throws
  // DeviceError when it would have to grow during a recording.
  void* split_memory(size_t bytes);

  cublasLtHandle_t blas() const { return blas_; }

  // State that an operation keeps with the stream, such as tuned GEMMs and library handles: the
  // result of `make`, a std::shared_ptr<T>, at the first call for this T. Side streams share
  // main's.
  template <typename T, typename Make>
  T& state(const Make& make) {
    std::shared_ptr<void>& held = tuning().states_[typeid(T)];
    if (!held) held = make();
    return *static_cast<T*>(held.get());
  }

 private:
  // Memory that is replaced by a larger allocation when needed.
  struct Growing {
    void* data = nullptr;
    size_t bytes = 0;
  };
  void* grow(Growing* memory, size_t bytes, const char* what);

  CudaStream* main_ = nullptr;  // a side stream's main stream
  int index_ = 0, capability_ = 0, sms_ = 0;
  size_t shared_bytes_ = 0;
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t blas_ = nullptr;
  void* workspace_ = nullptr;
  void* second_workspace_ = nullptr;
  Growing split_memory_, gemm_workspace_, gemm_flags_;
  size_t workspace_bytes_ = 0;
  std::unordered_map<void*, size_t> blocks_;
  int64_t allocations_ = 0;
  size_t allocated_ = 0, peak_ = 0;
  std::unordered_map<std::type_index, std::shared_ptr<void>> states_;
};

inline CudaStream& cuda_stream(Stream& s) {
  return static_cast<CudaStream&>(s);
}

// A Compute whose stream is known to be a GPU's. Lives no longer than the Compute it was made from.
struct CudaCompute {
  CudaStream& stream;
  const ComputeOptions& options;
  int sms_for_gemms() const { return stream.sms() - options.reserved_sms; }
};

inline CudaCompute cuda_compute(const Compute& c) {
  return {cuda_stream(c.stream), c.options};
}

}  // namespace tally::train::cuda
