// Work beside a stream's own: what later operations need not wait for, so that it fills the
// multiprocessors that they leave idle.
#pragma once

#include <functional>
#include <memory>

#include "src/ops/stream.h"

namespace tally::train {

// Pieces of work on a second queue of the device, in the order of the calls. One recorded step
// (StepGraph) overlaps them with what follows on the stream; elsewhere (CPU, eager steps, which
// time algorithms) the stream waits for each at once. The results are the same.
class SideQueue {
 public:
  virtual ~SideQueue() = default;
  // Enqueues `work` (matrix products without sums of columns) on the queue it is given. It begins
  // when all that the stream has at this moment is done. Nothing that it reads may be overwritten,
  // and nothing that it writes touched, before join().
  virtual void run(const std::function<void(Stream&)>& work) = 0;
  // What follows on the stream waits for all pieces but the last `but` (at most 6). A recording
  // must end with join(0).
  virtual void join(int but = 0) = 0;

  // `beside` false, or a device without a second queue: everything runs on `stream` itself.
  static std::unique_ptr<SideQueue> make(Stream& stream, bool beside);
};

}  // namespace tally::train
