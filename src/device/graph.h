// A step's work recorded once and launched as one: a CUDA graph on a GPU, plain calls on the CPU.
#pragma once

#include <functional>
#include <memory>

#include "src/device/stream.h"

namespace tally::train {

// What is recorded must be the same at every step: the same kernels on the same memory. What
// changes from step to step (ids, learning rate, loss scale) is read from device memory that the
// host fills before; so does the seed of dropout where DropoutSeed names the step's state.
class StepGraph {
 public:
  static constexpr int eager_calls = 2;

  virtual ~StepGraph() = default;
  // Work enqueued between the two calls is recorded and not run; on the CPU it runs at once.
  // Nothing may be allocated and nothing waited for in between. Throws DeviceError when the
  // recording is broken off.
  virtual void begin_capture() = 0;
  virtual void end_capture() = 0;
  // Enqueues what was recorded. On the CPU: nothing, since it ran while it was "recorded".
  virtual void replay() = 0;
  // Whether replay() does the work (a GPU); false where every step must be called.
  virtual bool records() const = 0;

  // The usual way: calls `step` as it is `eager_steps` times (algorithms are tuned and libraries
  // load there), records the next call, and from then on replays.
  void run(const std::function<void()>& step, int eager_steps = eager_calls);

  static std::unique_ptr<StepGraph> make(Stream& stream);

 private:
  int calls_ = 0;
  bool recorded_ = false;
};

}  // namespace tally::train
