#include "src/device/cuda/gpu.h"

#include <fmt/format.h>

#include <vector>

#include "src/device/cuda/check.h"
#include "src/device/cuda/cuda_stream.h"

namespace tally::train::cuda {
namespace {

class CudaEvents final : public StreamEvents {
 public:
  CudaEvents(Stream& stream, int count)
      : stream_(cuda_stream(stream).stream()), events_(static_cast<size_t>(count), nullptr) {
    for (cudaEvent_t& event : events_) CUDA_CHECK(cudaEventCreate(&event));
  }
  ~CudaEvents() override {
    for (cudaEvent_t event : events_)
      if (event != nullptr) cudaEventDestroy(event);
  }
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;

  void record(int index) override {
    CUDA_CHECK(cudaEventRecord(events_.at(static_cast<size_t>(index)), stream_));
  }
  void wait(int index) override {
    CUDA_CHECK(cudaEventSynchronize(events_.at(static_cast<size_t>(index))));
  }
  double seconds(int from, int to) override {
    float milliseconds = 0;
    CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events_.at(static_cast<size_t>(from)),
                                    events_.at(static_cast<size_t>(to))));
    return milliseconds / 1e3;
  }

 private:
  cudaStream_t stream_;
  std::vector<cudaEvent_t> events_;
};

}  // namespace

std::unique_ptr<StreamEvents> make_events(Stream& stream, int count) {
  return std::make_unique<CudaEvents>(stream, count);
}

void* allocate_host(size_t bytes) {
  void* data = nullptr;
  if (cudaHostAlloc(&data, bytes, cudaHostAllocDefault) != cudaSuccess) {
    cudaGetLastError();  // the error is reported here, not at the next launch
    throw OutOfMemory(fmt::format("{} bytes of pinned host memory could not be allocated", bytes));
  }
  return data;
}

void release_host(void* data) {
  cudaFreeHost(data);
}

}  // namespace tally::train::cuda
