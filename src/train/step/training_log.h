// The lines that a training prints about its steps, and the sums behind them.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "src/config/config.h"
#include "src/measure/record.h"
#include "src/train/step/progress.h"

namespace tally::train {

class TrainingLog {
 public:
  // `print` gets the lines, `lists` the intervals and epochs. All outlive it.
  TrainingLog(const Config& config, std::function<void(const std::string&)> print, RunLists* lists);

  // The time of the first interval begins; the device is idle. `within_epoch`: the run is resumed
  // within an epoch, whose earlier steps it does not know.
  void start(bool within_epoch = false);
  // Does work between steps whose time does not count as training's.
  template <typename Work>
  void untimed(Work&& work) {
    const auto begin = Clock::now();
    work();
    untimed_ += Clock::now() - begin;
  }
  void add(const Step& step);
  // Prints and records the interval since the last line, which ends after `done` steps and
  // its samples. `loss_scale`: of the next step.
  void log_interval(const Progress& done, double loss_scale);
  // The same for a pass over the training blocks. `validation_loss`: where there is one.
  void log_epoch(int64_t epoch, int64_t iteration, std::optional<double> validation_loss);

 private:
  using Clock = std::chrono::steady_clock;
  // Steps since the last log line.
  struct Interval {
    int64_t steps = 0, skipped = 0, losses = 0, nan = 0, samples = 0;
    double loss_sum = 0;
    Step last;
  };
  // Steps that have a loss since the last epoch's end.
  struct EpochSum {
    double loss = 0;
    int64_t steps = 0;
    int64_t first = 0;     // iteration of the first step since then
    bool partial = false;  // the epoch had steps before it
  };

  const Config& config_;
  const std::function<void(const std::string&)> print_;
  RunLists& lists_;
  Interval interval_;
  EpochSum epoch_;
  Clock::time_point interval_start_;
  Clock::duration untimed_{};
};

}  // namespace tally::train
