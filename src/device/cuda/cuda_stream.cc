#include "src/device/cuda/cuda_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "src/device/cuda/check.h"
#include "src/device/cuda/device_code.h"
#include "src/device/cuda/gpu.h"

namespace tally::train::cuda {
namespace {

constexpr size_t second_workspace_size = size_t{64} << 20;

std::string gibibytes(size_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

// TALLY_GPU_CAPABILITY=80 uses only the kernels and library paths of a GPU of that compute
// capability, so that a newer GPU can test them.
int most_capability() {
  const char* wanted = std::getenv("TALLY_GPU_CAPABILITY");
  const int most = wanted ? std::atoi(wanted) : 0;
  return most > 0 ? most : 1000;
}

}  // namespace

std::unique_ptr<Stream> make_stream(int index) {
  return std::make_unique<CudaStream>(index);
}

CudaStream::CudaStream(int index) : index_(index) {
  const int devices = device_count();
  if (devices == 0) throw DeviceError("no GPU can be used: " + unavailable_reason());
  if (index < 0 || index >= devices) {
    throw DeviceError(fmt::format("GPU {} does not exist: this process sees {} (numbered from 0)",
                                  index, devices));
  }
  CUDA_CHECK(cudaSetDevice(index));
  const DeviceInfo info = cuda::device_info(index);
  if (!has_device_code()) {
    throw NoDeviceCode(
        fmt::format("{} has compute capability {}.{} and this build has code for {}", info.name,
                    info.capability / 10, info.capability % 10, TALLY_CUDA_ARCHITECTURES_TEXT),
        info.capability);
  }
  capability_ = std::min(info.capability, most_capability());
  sms_ = info.sms;
  int shared = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, index));
  // The shared memory of a block; with TALLY_GPU_CAPABILITY, that of a GPU of compute capability
  // 8.0.
  shared_bytes_ = static_cast<size_t>(capability_ < 90 ? std::min(shared, 163 << 10) : shared);
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  CUBLAS_CHECK(cublasLtCreate(&blas_));
  workspace_bytes_ = gemm_workspace_bytes(info.total_bytes);
  workspace_ = allocate(workspace_bytes_, "GEMM workspace");
}

CudaStream::CudaStream(CudaStream* main)
    : main_(main),
      index_(main->index_),
      capability_(main->capability_),
      sms_(main->sms_),
      shared_bytes_(main->shared_bytes_) {
  CUDA_CHECK(cudaSetDevice(index_));
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  CUBLAS_CHECK(cublasLtCreate(&blas_));
}

CudaStream::~CudaStream() {
  cudaSetDevice(index_);
  if (stream_) cudaStreamSynchronize(stream_);
  if (main_) {
    main_->release(split_memory_.data);
    main_->release(gemm_workspace_.data);
    main_->release(gemm_flags_.data);
  }
  states_.clear();
  for (const auto& [data, bytes] : blocks_) cudaFree(data);
  if (blas_) cublasLtDestroy(blas_);
  if (stream_) cudaStreamDestroy(stream_);
}

void CudaStream::synchronize() {
  CUDA_CHECK(cudaStreamSynchronize(stream_));
}

void CudaStream::copy(void* to, const void* from, size_t bytes) {
  if (bytes) CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_));
}

void CudaStream::fill_zero(void* data, size_t bytes) {
  if (bytes) CUDA_CHECK(cudaMemsetAsync(data, 0, bytes, stream_));
}

void* CudaStream::allocate(size_t bytes, const char* what) {
  if (main_) return main_->allocate(bytes, what);
  const size_t rounded = allocated_bytes(bytes);
  CUDA_CHECK(cudaSetDevice(index_));
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, rounded);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    throw OutOfMemory(fmt::format(
        "GPU {}: {} for {} does not fit: {} of {} are free and {} are held by this run", index_,
        gibibytes(rounded), what, gibibytes(free), gibibytes(total), gibibytes(allocated_)));
  }
  CUDA_CHECK(error);
  blocks_[data] = rounded;
  ++allocations_;
  allocated_ += rounded;
  peak_ = std::max(peak_, allocated_);
  return data;
}

void CudaStream::release(void* data) {
  if (main_) {
    synchronize();
    return main_->release(data);
  }
  const auto it = blocks_.find(data);
  if (it == blocks_.end()) return;
  CUDA_CHECK(cudaStreamSynchronize(stream_));
  CUDA_CHECK(cudaFree(data));
  allocated_ -= it->second;
  blocks_.erase(it);
}

bool CudaStream::capturing() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CUDA_CHECK(cudaStreamIsCapturing(stream_, &status));
  return status == cudaStreamCaptureStatusActive;
}

void* CudaStream::second_workspace() {
  if (!second_workspace_) {
    if (capturing()) {
      throw DeviceError(
          "an operation ran for the first time while a CUDA graph was recorded: run one "
          "step before recording");
    }
    second_workspace_ = allocate(second_workspace_size, "second workspace");
  }
  return second_workspace_;
}

void* CudaStream::grow(Growing* memory, size_t bytes, const char* what) {
  if (bytes <= memory->bytes) return memory->data;
  if (capturing()) {
    throw DeviceError(
        "a GEMM ran for the first time while a CUDA graph was recorded: run one step before "
        "recording");
  }
  if (memory->data) release(memory->data);
  *memory = {};
  memory->data = allocate(bytes, what);
  memory->bytes = bytes;
  return memory->data;
}

void* CudaStream::split_memory(size_t bytes) {
  return grow(&split_memory_, bytes, "operands split for tf32x3");
}

void CudaStream::announce_long_autotune() {
  if (const auto announce = std::exchange(tuning().on_long_autotune, nullptr)) announce();
}

void* CudaStream::gemm_workspace(size_t bytes) {
  if (!main_) return workspace_;
  return grow(&gemm_workspace_, bytes, "workspace of the weight gradients");
}

void* CudaStream::gemm_flags(size_t bytes) {
  if (bytes > gemm_flags_.bytes) fill_zero(grow(&gemm_flags_, bytes, "flags of the GEMMs"), bytes);
  return gemm_flags_.data;
}

size_t CudaStream::second_workspace_bytes() const {
  return second_workspace_size;
}

}  // namespace tally::train::cuda
