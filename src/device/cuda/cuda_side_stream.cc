#include "src/device/cuda/gpu.h"

#include "src/device/cuda/check.h"
#include "src/device/cuda/cuda_stream.h"

namespace tally::train::cuda {
namespace {

class Mark {
 public:
  Mark() { CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Mark() { cudaEventDestroy(event_); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  // `later` waits until `earlier` has reached this point.
  void order(cudaStream_t earlier, cudaStream_t later) {
    CUDA_CHECK(cudaEventRecord(event_, earlier));
    CUDA_CHECK(cudaStreamWaitEvent(later, event_, 0));
  }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaSideStream final : public SideStream {
 public:
  explicit CudaSideStream(CudaStream& main) : main_(main), side_(&main) {}

  void launch(const std::function<void(Stream&)>& work) override {
    fork_.order(main_.stream(), side_.stream());
    work(side_);
    CUDA_CHECK(cudaEventRecord(done_.get(), side_.stream()));
    working_ = true;
    if (!main_.capturing()) wait();
  }

  // Pieces run in order: all are done when the last one is.
  void wait() override {
    if (!working_) return;
    CUDA_CHECK(cudaStreamWaitEvent(main_.stream(), done_.get(), 0));
    working_ = false;
  }

 private:
  CudaStream& main_;
  CudaStream side_;
  Mark fork_, done_;
  bool working_ = false;
};

}  // namespace

std::unique_ptr<SideStream> make_side_stream(Stream& stream) {
  return std::make_unique<CudaSideStream>(cuda_stream(stream));
}

}  // namespace tally::train::cuda
