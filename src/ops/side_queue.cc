#include "src/ops/side_queue.h"

#ifdef TALLY_WITH_CUDA
#include "src/ops/cuda/cuda_side_queue.h"
#endif

namespace tally::train {
namespace {

class SameQueue final : public SideQueue {
 public:
  explicit SameQueue(Stream& stream) : stream_(stream) {}
  void run(const std::function<void(Stream&)>& work) override { work(stream_); }
  void join(int) override {}

 private:
  Stream& stream_;
};

}  // namespace

std::unique_ptr<SideQueue> SideQueue::make(Stream& stream, bool beside) {
#ifdef TALLY_WITH_CUDA
  if (beside && stream.device().is_cuda()) return cuda::make_side_queue(stream);
#endif
  (void)beside;
  return std::make_unique<SameQueue>(stream);
}

}  // namespace tally::train
