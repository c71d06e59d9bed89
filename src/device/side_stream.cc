#include "src/device/side_stream.h"

#ifdef TALLY_WITH_CUDA
#include "src/device/cuda/cuda_side_stream.h"
#endif

namespace tally::train {
namespace {

class SameStream final : public SideStream {
 public:
  explicit SameStream(Stream& stream) : stream_(stream) {}
  void launch(const std::function<void(Stream&)>& work) override { work(stream_); }
  void wait(int) override {}

 private:
  Stream& stream_;
};

}  // namespace

std::unique_ptr<SideStream> SideStream::make(Stream& stream, bool overlap) {
#ifdef TALLY_WITH_CUDA
  if (overlap && stream.device().is_cuda()) return cuda::make_side_stream(stream);
#endif
  (void)overlap;
  return std::make_unique<SameStream>(stream);
}

}  // namespace tally::train
