#include "src/train/step/counter_window.h"

#include <fmt/format.h>

#include <utility>

#include "src/device/graph.h"
#include "src/train/run/failures.h"

namespace tally::train {

const std::vector<ProfileFile>& counter_files() {
  static const std::vector<ProfileFile> files{{"counters.csv", counters_csv_header()},
                                              {"kernel_use.csv", kernel_use_csv_header()}};
  return files;
}

CounterWindow::CounterWindow(const Config& config, Stream& stream,
                             std::unique_ptr<CounterProfiler> profiler,
                             const std::function<void(const std::string&)>& notice)
    : config_(config),
      stream_(stream),
      profiler_(std::move(profiler)),
      selection_(
          select_counters([this](const std::string& name) { return profiler_->has_metric(name); })),
      passes_(profiler_->select(selection_.metrics)) {
  const std::string missing = missing_counters_text(selection_, profiler_->chip());
  if (!missing.empty()) notice(missing);
}

void CounterWindow::before_step(int64_t iteration) {
  const auto& [first, last] = config_.profile_window;
  if (first_step_ == 0) {
    first_step_ = iteration;
    if (iteration <= first && first - iteration < StepGraph::eager_calls)
      throw InputError(fmt::format(
          "--profile-start: this run begins with iteration {}, and its first {} iterations time "
          "algorithms, which --profile-counters would disturb: give {} or later",
          iteration, StepGraph::eager_calls, iteration + StepGraph::eager_calls));
  }
  // A run that is resumed within the window does not count.
  counts_ = first_step_ <= first && iteration >= first && iteration <= last;
  if (!counts_) return;
  stream_.synchronize();
  profiler_->start();
}

void CounterWindow::after_step(int64_t iteration) {
  if (!counts_) return;
  counts_ = false;
  stream_.synchronize();
  for (KernelCounters& kernel : match_counters(profiler_->stop(), selection_, iteration))
    kernels_.push_back(std::move(kernel));
  if (iteration != config_.profile_window.second) return;
  CounterResult result{counter_profile_of(kernels_), selection_, profiler_->chip(), passes_};
  write_profile_file(config_.profile_dir, "counters.csv", counters_csv(kernels_));
  write_profile_file(config_.profile_dir, "kernel_use.csv", kernel_use_csv(result.profile));
  facts_.counters = std::move(result);
}

}  // namespace tally::train
