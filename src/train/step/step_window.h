// Observers of the steps between two iterations, --profile-start and --profile-stop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "src/config/config.h"
#include "src/device/stream.h"
#include "src/measure/record.h"

namespace tally::train {

class StepWindow {
 public:
  virtual ~StepWindow() = default;
  // Called before step `iteration` is enqueued, and after. Throws DeviceError and
  // std::runtime_error.
  virtual void before_step(int64_t iteration) = 0;
  virtual void after_step(int64_t iteration) = 0;
  // Empty before the last step of the window.
  const WindowFacts& facts() const { return facts_; }

 protected:
  WindowFacts facts_;
};

// The window that `config` asks for: a ProfileWindow, or a CounterWindow (--profile-counters).
// Checks that its files can be written. All arguments outlive it. `notice` is called for what the
// user should know. Throws InputError.
std::unique_ptr<StepWindow> open_step_window(const Config& config, Stream& stream,
                                             const std::function<void(const std::string&)>& notice);

}  // namespace tally::train
