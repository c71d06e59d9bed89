// --profile-start and --profile-stop: a profile of the steps between two iterations.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "src/device/profiler.h"
#include "src/train/step/profile_files.h"
#include "src/train/step/step_window.h"

namespace tally::train {

class ProfileWindow final : public StepWindow {
 public:
  // The others outlive it.
  ProfileWindow(const Config& config, Stream& stream, std::unique_ptr<DeviceProfiler> profiler);

  // Wait for the device at the window's ends. After the last step of the window the files are
  // written and the facts are known.
  void before_step(int64_t iteration) override;
  void after_step(int64_t iteration) override;

 private:
  const Config& config_;
  Stream& stream_;
  const std::unique_ptr<DeviceProfiler> profiler_;
  std::chrono::steady_clock::time_point start_;
};

// kernels.csv (an invocation a line) and trace.json (Chrome's format).
const std::vector<ProfileFile>& profile_files();

}  // namespace tally::train
