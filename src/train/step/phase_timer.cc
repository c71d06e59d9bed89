#include "src/train/step/phase_timer.h"

namespace tally::train {

PhaseTimer::PhaseTimer(Stream& stream) : events_(StreamEvents::make(stream, 2)) {}

void PhaseTimer::begin() {
  seconds_ = {};
  events_->record(last_);
}

void PhaseTimer::end(StepPhase phase) {
  const int now = 1 - last_;
  events_->record(now);
  events_->wait(now);
  seconds_[static_cast<size_t>(phase)] += events_->seconds(last_, now);
  last_ = now;
}

}  // namespace tally::train
