#include "src/train/step/step_window.h"

#include <utility>

#include "src/train/run/failures.h"
#include "src/train/step/counter_window.h"
#include "src/train/step/profile_window.h"

namespace tally::train {

std::unique_ptr<StepWindow> open_step_window(
    const Config& config, Stream& stream, const std::function<void(const std::string&)>& notice) {
  const auto& files = config.profile_counters ? counter_files() : profile_files();
  check_flag("--profile-dir", [&] { prepare_profile_folder(config.profile_dir, files, notice); });
  std::unique_ptr<StepWindow> window;
  if (config.profile_counters) {
    check_flag("--profile-counters", [&] {
      window =
          std::make_unique<CounterWindow>(config, stream, CounterProfiler::open(stream), notice);
    });
  } else {
    check_flag("--profile-start", [&] {
      window = std::make_unique<ProfileWindow>(config, stream, DeviceProfiler::open(stream));
    });
  }
  return window;
}

}  // namespace tally::train
