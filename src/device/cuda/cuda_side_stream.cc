#include "src/device/cuda/gpu.h"

#include <array>

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
    Mark& done = done_[static_cast<size_t>(pieces_++) % done_.size()];
    CUDA_CHECK(cudaEventRecord(done.get(), side_.stream()));
    if (!main_.capturing()) wait(0);
  }

  // Pieces run in order: one is done when a later one is.
  void wait(int but) override {
    const int64_t until = pieces_ - but;
    if (until <= waited_) return;
    const Mark& done = done_[static_cast<size_t>(until - 1) % done_.size()];
    CUDA_CHECK(cudaStreamWaitEvent(main_.stream(), done.get(), 0));
    waited_ = until;
  }

 private:
  CudaStream& main_;
  CudaStream side_;
  Mark fork_;
  std::array<Mark, 8> done_;
  int64_t pieces_ = 0, waited_ = 0;
};

}  // namespace

std::unique_ptr<SideStream> make_side_stream(Stream& stream) {
  return std::make_unique<CudaSideStream>(cuda_stream(stream));
}

}  // namespace tally::train::cuda
