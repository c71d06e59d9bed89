#include "src/device/side_stream.h"

#include "src/device/counting/counting_stream.h"
#include "src/device/devices.h"

namespace tally::train {
namespace {

class SameStream final : public SideStream {
 public:
  explicit SameStream(Stream& stream) : stream_(stream) {}
  void launch(const std::function<void(Stream&)>& work) override { work(stream_); }
  void wait() override {}

 private:
  Stream& stream_;
};

}  // namespace

std::unique_ptr<SideStream> SideStream::make(Stream& stream, bool overlap) {
  if (overlap && stream.device().is_cuda()) return gpus()->make_side_stream(stream);
  if (overlap && stream.device().counts_as_gpu) return counting::make_side_stream(stream);
  return std::make_unique<SameStream>(stream);
}

}  // namespace tally::train
