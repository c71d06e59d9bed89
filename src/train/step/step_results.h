// The results of the last steps. The device copies each to the host when the step ends. The host
// waits for them only when a log line, an evaluation or a checkpoint needs them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/device/events.h"
#include "src/device/step_state.h"
#include "src/measure/record.h"

namespace tally::train {

class StepResults {
 public:
  // Holds up to `capacity` steps. `stream` outlives it. Throws OutOfMemory.
  StepResults(Stream& stream, int capacity);

  int capacity() const { return capacity_; }
  int pending() const { return pending_; }
  bool full() const { return pending_ == capacity_; }

  // A step begins. Waits until the device is at most `run_ahead` steps behind. Returns the step's
  // slot, 0 ... capacity - 1.
  int begin(int64_t samples);
  // The state that the host fills for the step that begins, see Optimizer::begin_step().
  StepState* staging() const { return staging_.as<StepState>() + pending_; }
  // The step ends: enqueues the copy of its state.
  void end(const StepState* state);

  // The states of the pending steps that the device is known to have finished: all but the last
  // few.
  int done() const { return done_; }
  const StepState& state(int slot) const { return states_.as<StepState>()[slot]; }
  int64_t samples(int slot) const { return samples_[static_cast<size_t>(slot)]; }  // pending

  // Waits for the device.
  void wait();
  // Returns the pending steps, of which the first is the run's iteration `first`, and forgets them.
  // Call it after wait().
  std::vector<Step> take(int64_t first);

  // Steps that the host may be ahead of the device: enough to keep it busy, few enough that ids in
  // flight need little memory.
  static constexpr int run_ahead = 2;

 private:
  Stream& stream_;
  const int capacity_;
  HostMemory staging_, states_;           // [capacity] StepState each
  std::unique_ptr<StreamEvents> events_;  // 0: before the first pending step; k + 1: after step k
  std::vector<int64_t> samples_;          // samples of the pending steps
  int pending_ = 0, done_ = 0;
};

}  // namespace tally::train
