#include "src/train/profile_window.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "src/data/output_file.h"
#include "src/measure/profile.h"

namespace tally::train {
namespace {

void write_whole(const std::string& path, const std::string& text) {
  OutputFile file(path + ".tmp", true);
  file.append(text.data(), text.size());
  file.sync_and_keep();
  rename_durably(file.path(), path);
}

}  // namespace

void prepare_profile_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!std::filesystem::is_directory(folder))
    throw std::runtime_error(
        fmt::format("'{}' exists but is not a directory, or cannot be made", folder));
  OutputFile(folder + "/kernels.csv.tmp", true);  // throws where the folder cannot be written
}

void write_profile(const std::string& folder, const std::vector<DeviceActivity>& activities,
                   const std::string& process) {
  write_whole(folder + "/kernels.csv", profile_csv(activities));
  write_whole(folder + "/trace.json", chrome_trace(activities, process));
}

ProfileWindow::ProfileWindow(const Config& config, Stream& stream, DeviceProfiler* profiler,
                             Record* record)
    : config_(config), stream_(stream), profiler_(*profiler), record_(*record) {}

void ProfileWindow::before_step(int64_t iteration) {
  if (iteration != config_.profile_window.first) return;
  stream_.synchronize();
  profiler_.start();
  start_ = std::chrono::steady_clock::now();
}

void ProfileWindow::after_step(int64_t iteration) {
  const auto& [first, last] = config_.profile_window;
  // A run that is resumed within the window has not started the profile.
  if (iteration != last || start_ == std::chrono::steady_clock::time_point()) return;
  stream_.synchronize();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  ProfileResult result;
  const std::vector<DeviceActivity> activities = profiler_.stop(&result.lost);
  result.profile = profile_of(activities, elapsed.count());
  write_profile(config_.profile_dir, activities,
                fmt::format("rank {}, iterations {} to {}", config_.rank, first, last));
  record_.profile = std::move(result);
}

}  // namespace tally::train
