// --profile-counters: hardware counters of the steps between two iterations.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/device/counter_profiler.h"
#include "src/measure/counters.h"
#include "src/train/step/profile_files.h"
#include "src/train/step/step_window.h"

namespace tally::train {

class CounterWindow final : public StepWindow {
 public:
  // Selects the metrics. The others outlive it. `notice` is called where the GPU lacks some. Throws
  // DeviceError and std::runtime_error.
  CounterWindow(const Config& config, Stream& stream, std::unique_ptr<CounterProfiler> profiler,
                const std::function<void(const std::string&)>& notice);

  // Wait for the device around each step of the window. After its last step the files are written
  // and the facts are known. before_step() throws InputError where the window would count the
  // kernels of steps that time algorithms.
  void before_step(int64_t iteration) override;
  void after_step(int64_t iteration) override;

 private:
  const Config& config_;
  Stream& stream_;
  const std::unique_ptr<CounterProfiler> profiler_;
  const CounterSelection selection_;
  int passes_ = 0;
  int64_t first_step_ = 0;  // this run's first; 0: before it
  bool counts_ = false;
  std::vector<KernelCounters> kernels_;
};

// counters.csv (an invocation a line) and kernel_use.csv (a kernel a line).
const std::vector<ProfileFile>& counter_files();

}  // namespace tally::train
