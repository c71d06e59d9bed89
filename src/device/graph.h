// A step's work recorded once and launched as one: a CUDA graph on a GPU, plain calls on the CPU.
#pragma once

#include <functional>
#include <memory>

#include "src/device/stream.h"

namespace tally::train {

// The recorded work must be the same at every step: the same kernels on the same memory. Values
// that change from step to step (ids, learning rate, loss scale) are read from device memory that
// the host fills before, and so is dropout's seed where DropoutSeed names the step's state.
class StepGraph {
 public:
  static constexpr int eager_calls = 2;

  virtual ~StepGraph() = default;
  // Work enqueued between the two calls is recorded and not run; on the CPU it runs at once.
  // The work in between may neither allocate nor wait. Throws DeviceError when the recording fails.
  virtual void begin_capture() = 0;
  virtual void end_capture() = 0;
  // Enqueues what was recorded. On the CPU this does nothing, because it ran while it was
  // "recorded".
  virtual void replay() = 0;
  // Whether replay() does the work (on a GPU); false where every step must be called.
  virtual bool records() const = 0;

  // Calls `step` as it is `eager_steps` times (this tunes algorithms and loads libraries), records
  // the next call, and replays from then on.
  void run(const std::function<void()>& step, int eager_steps = eager_calls);

  static std::unique_ptr<StepGraph> make(Stream& stream);

 private:
  int calls_ = 0;
  bool recorded_ = false;
};

}  // namespace tally::train
