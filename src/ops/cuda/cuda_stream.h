// The Stream of one GPU: its queue, library handles, scratch memory and what was tuned on it.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <memory>
#include <unordered_map>

#include "src/ops/stream.h"

namespace tally::train::cuda {

class GemmPlans;       // gemm.h
class CudnnAttention;  // attention_cudnn.h

class CudaStream final : public Stream {
 public:
  // Throws DeviceError when the GPU cannot be used, see make_stream().
  explicit CudaStream(int index);
  // A second queue of `main`'s GPU for matrix products: plans and settings are main's, what it
  // allocates counts as main's, its scratch grows with the first calls. `main` is not null and
  // outlives it.
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
  int multiprocessors() const { return multiprocessors_; }
  int multiprocessors_for_products() const { return multiprocessors_ - products_leave; }
  size_t shared_bytes_a_block() const { return shared_bytes_; }  // the most a kernel can ask for
  bool capturing() const;

  // Scratch for one operation: whatever is in it is lost at the next call of any operation. Fixed
  // size, part of bytes_allocated().
  void* workspace() const { return workspace_; }
  size_t workspace_bytes() const { return workspace_bytes_; }
  // Scratch of at least `bytes` for a product whose algorithm wants so much. A second queue's grows
  // and throws DeviceError when it would have to during a recording.
  void* product_workspace(size_t bytes);
  // Marks of at least `bytes` for products that leave them all zero, as they are at first. Throws
  // DeviceError when they would have to be made during a recording.
  void* product_marks(size_t bytes);
  // Where algorithms are timed: the largest that a product may have. A second queue borrows main's,
  // which must be idle then.
  CudaStream& tuning() { return main_ ? *main_ : *this; }
  // Calls before_long_tuning of the main queue, the first time.
  void announce_long_tuning();
  // A second scratch for operations that also call cuBLASLt (which uses the first). Made at the
  // first call; throws DeviceError during a recording.
  void* second_workspace();
  size_t second_workspace_bytes() const;

  // Room for the split operands of tf32x3's products: grows at the first calls of a shape, throws
  // DeviceError when it would have to during a recording.
  void* split_memory(size_t bytes);

  cublasLtHandle_t blas() const { return blas_; }
  GemmPlans& gemms() { return *gemms_; }
  // Matrix products here follow the settings of `main` as they are now.
  void follow(const CudaStream& main);
  // Null when the build has no cuDNN front end.
  CudnnAttention* cudnn() { return cudnn_.get(); }

 private:
  // Memory that is replaced by more of it.
  struct Growing {
    void* data = nullptr;
    size_t bytes = 0;
  };
  void* grow(Growing* memory, size_t bytes, const char* what);

  CudaStream* main_ = nullptr;  // of a second queue
  int index_ = 0, capability_ = 0, multiprocessors_ = 0;
  size_t shared_bytes_ = 0;
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t blas_ = nullptr;
  void* workspace_ = nullptr;
  void* second_workspace_ = nullptr;
  Growing split_memory_, product_workspace_, product_marks_;
  size_t workspace_bytes_ = 0;
  std::unordered_map<void*, size_t> blocks_;
  int64_t allocations_ = 0;
  size_t allocated_ = 0, peak_ = 0;
  std::shared_ptr<GemmPlans> gemms_;  // a second queue's are main's
  std::unique_ptr<CudnnAttention> cudnn_;
};

inline CudaStream& cuda_stream(Stream& s) {
  return static_cast<CudaStream&>(s);
}

}  // namespace tally::train::cuda
