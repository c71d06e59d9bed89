#include "src/device/graph.h"

#include "src/device/devices.h"

namespace tally::train {
namespace {

class EagerGraph final : public StepGraph {
 public:
  void begin_capture() override {}
  void end_capture() override {}
  void replay() override {}
  bool records() const override { return false; }
};

}  // namespace

void StepGraph::run(const std::function<void()>& step, int eager_steps) {
  if (!records() || calls_ < eager_steps) {
    ++calls_;
    step();
    return;
  }
  if (!recorded_) {
    begin_capture();
    step();
    end_capture();
    recorded_ = true;
  }
  replay();
}

std::unique_ptr<StepGraph> StepGraph::make(Stream& stream) {
  if (stream.device().is_cuda()) return gpus()->make_step_graph(stream);
  return std::make_unique<EagerGraph>();
}

}  // namespace tally::train
