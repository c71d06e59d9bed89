// Work that overlaps with a stream's own: what later operations need not wait for, so that it fills
// the SMs that they leave idle.
#pragma once

#include <functional>
#include <memory>

#include "src/device/stream.h"

namespace tally::train {

// Pieces of work on a second stream of the device, in the order of the calls. A recorded step
// (StepGraph) overlaps them with what follows on the main stream. Elsewhere (CPU, eager steps, which
// time algorithms) the main stream waits for each at once. The results are the same.
class SideStream {
 public:
  virtual ~SideStream() = default;
  // Enqueues `work` (GEMMs without column sums) on the stream it is given. It begins when all that
  // the main stream has at this moment is done. Before wait(), nothing that it reads may be
  // overwritten and nothing that it writes may be touched.
  virtual void launch(const std::function<void(Stream&)>& work) = 0;
  // What follows on the main stream waits for all pieces but the last `but` (at most 6). A
  // recording must end with wait(0).
  virtual void wait(int but = 0) = 0;

  // With `overlap` false, or a device without a second stream, everything runs on `stream` itself.
  static std::unique_ptr<SideStream> make(Stream& stream, bool overlap);
};

}  // namespace tally::train
