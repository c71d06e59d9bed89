// Work that overlaps with the main stream's: later operations do not need it soon, and it fills the
// SMs that they leave idle.
#pragma once

#include <functional>
#include <memory>

#include "src/device/stream.h"

namespace tally::train {

// Pieces of work on a side stream of the device, in the order of the calls. A recorded step
// (StepGraph) overlaps them with what follows on the main stream. Elsewhere (on the CPU, and in
// eager steps, which time algorithms) the main stream waits for each at once. The results are the
// same.
class SideStream {
 public:
  virtual ~SideStream() = default;
  // Enqueues `work` (without column sums) on the stream that it is given. It begins when the
  // main stream has reached this point. Before wait(), nothing that it reads may be overwritten and
  // nothing that it writes may be touched.
  virtual void launch(const std::function<void(Stream&)>& work) = 0;
  // Makes the main stream wait for all pieces. A recording must end with it.
  virtual void wait() = 0;

  // Everything runs on `stream` itself if `overlap` is false or the device has no second stream.
  static std::unique_ptr<SideStream> make(Stream& stream, bool overlap);
};

}  // namespace tally::train
