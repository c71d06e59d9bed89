#include "src/train/step/profile_window.h"

#include <fmt/format.h>

#include <utility>

#include "src/measure/profile.h"

namespace tally::train {

const std::vector<ProfileFile>& profile_files() {
  static const std::vector<ProfileFile> files{
      {"kernels.csv", profile_csv_header()},
      {"trace.json", R"({"displayTimeUnit":"ns","traceEvents":)"}};
  return files;
}

ProfileWindow::ProfileWindow(const Config& config, Stream& stream,
                             std::unique_ptr<DeviceProfiler> profiler)
    : config_(config), stream_(stream), profiler_(std::move(profiler)) {}

void ProfileWindow::before_step(int64_t iteration) {
  if (iteration != config_.profile_window.first) return;
  stream_.synchronize();
  profiler_->start();
  start_ = std::chrono::steady_clock::now();
}

void ProfileWindow::after_step(int64_t iteration) {
  const auto& [first, last] = config_.profile_window;
  // A run that is resumed within the window has not started the profile.
  if (iteration != last || start_ == std::chrono::steady_clock::time_point()) return;
  stream_.synchronize();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  ProfileResult result;
  const std::vector<DeviceActivity> activities = profiler_->stop(&result.lost);
  result.profile = profile_of(activities, elapsed.count());
  write_profile_file(config_.profile_dir, "kernels.csv", profile_csv(activities));
  write_profile_file(config_.profile_dir, "trace.json",
                     chrome_trace(activities, fmt::format("rank {}, iterations {} to {}",
                                                          config_.rank, first, last)));
  facts_.profile = std::move(result);
}

}  // namespace tally::train
