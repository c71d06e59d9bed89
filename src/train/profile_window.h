// --profile-start and --profile-stop: a profile of the steps between two iterations.
#pragma once

#include <chrono>

#include "src/config/config.h"
#include "src/device/profiler.h"
#include "src/measure/record.h"

namespace tally::train {

class ProfileWindow {
 public:
  // All outlive it. `profiler`: not null.
  ProfileWindow(const Config& config, Stream& stream, DeviceProfiler* profiler, Record* record);

  // Before step `iteration` is enqueued, and after. Waits for the device at the window's ends. After
  // the last step of the window the files are written (write_profile()) and the record is filled.
  // Throws DeviceError and std::runtime_error.
  void before_step(int64_t iteration);
  void after_step(int64_t iteration);

 private:
  const Config& config_;
  Stream& stream_;
  DeviceProfiler& profiler_;
  Record& record_;
  std::chrono::steady_clock::time_point start_;
};

// Makes the folder --profile-dir. Throws std::runtime_error where files cannot be written there.
void prepare_profile_folder(const std::string& folder);
// Writes FOLDER/kernels.csv (an invocation a line) and FOLDER/trace.json (Chrome's format), each of
// them whole or not at all.
void write_profile(const std::string& folder, const std::vector<DeviceActivity>& activities,
                   const std::string& process);

}  // namespace tally::train
