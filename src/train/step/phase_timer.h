// Times the phases of a step one by one: waits for the device at the end of each, so that none
// overlaps with the next. A step is slower with it.
#pragma once

#include <memory>

#include "src/device/events.h"
#include "src/measure/phases.h"

namespace tally::train {

class PhaseTimer {
 public:
  // `stream` outlives it.
  explicit PhaseTimer(Stream& stream);

  // A step begins.
  void begin();
  // Ends `phase`, the work enqueued since begin() or the last end(). Its time is added to the
  // phase's of this step, on the device's clock. Waits for the device.
  void end(StepPhase phase);
  // The step's phases so far.
  const PhaseSeconds& seconds() const { return seconds_; }

 private:
  std::unique_ptr<StreamEvents> events_;  // two, which take turns
  int last_ = 0;
  PhaseSeconds seconds_{};
};

}  // namespace tally::train
