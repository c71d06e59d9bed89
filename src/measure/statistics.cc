#include "src/measure/statistics.h"

#include <algorithm>

namespace tally::train {

double median(std::vector<double> values) {
  if (values.empty()) return not_measured;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

int64_t warm_up_steps(int64_t steps) {
  return std::min<int64_t>(10, steps / 2);
}

namespace {

// Means of seconds per iteration, and of seconds per the run's global batch. They differ only where
// steps have other batch sizes.
class Mean {
 public:
  explicit Mean(int64_t global_batch) : global_batch_(static_cast<double>(global_batch)) {}
  void add(double seconds_per_iteration, double samples_per_iteration) {
    seconds_ += seconds_per_iteration;
    seconds_per_batch_ += per_batch(seconds_per_iteration, samples_per_iteration);
    count_ += 1;
  }
  double per_batch(double seconds, double samples) const {
    return samples > 0 ? seconds * global_batch_ / samples : seconds;
  }
  double seconds() const { return count_ > 0 ? seconds_ / count_ : not_measured; }
  double seconds_per_batch() const {
    return count_ > 0 ? seconds_per_batch_ / count_ : not_measured;
  }

 private:
  double global_batch_, seconds_ = 0, seconds_per_batch_ = 0, count_ = 0;
};

double rate(double tokens, double seconds) {
  return seconds > 0 ? tokens / seconds : not_measured;
}

}  // namespace

Throughput throughput(const std::vector<Interval>& intervals, const std::vector<Step>& steps,
                      int64_t global_batch, int64_t tokens_per_sample) {
  Throughput t;
  const double tokens = static_cast<double>(global_batch) * static_cast<double>(tokens_per_sample);
  Mean logged(global_batch), all(global_batch), steady(global_batch);
  const auto count = [](MeasuredWork* work, double work_seconds, int64_t work_steps) {
    work->seconds += work_seconds;
    work->steps += work_steps;
  };
  for (const Interval& i : intervals) {
    logged.add(i.seconds_per_iteration,
               static_cast<double>(i.samples) / static_cast<double>(std::max<int64_t>(1, i.steps)));
    count(&t.logged, i.seconds_per_iteration * static_cast<double>(i.steps), i.steps);
  }
  const auto warm_up = static_cast<size_t>(warm_up_steps(static_cast<int64_t>(steps.size())));
  std::vector<double> seconds, seconds_per_batch;
  for (size_t k = 0; k < steps.size(); ++k) {
    const Step& s = steps[k];
    const auto samples = static_cast<double>(s.samples);
    all.add(s.seconds, samples);
    count(&t.all, s.seconds, 1);
    if (k >= warm_up) {
      steady.add(s.seconds, samples);
      count(&t.steady, s.seconds, 1);
    }
    seconds.push_back(s.seconds);
    seconds_per_batch.push_back(all.per_batch(s.seconds, samples));
  }
  const Mean& megatron = intervals.empty() ? all : logged;
  if (intervals.empty()) t.logged = t.all;
  t.seconds_per_iteration = megatron.seconds();
  t.tokens_per_second = rate(tokens, megatron.seconds_per_batch());
  if (!steps.empty()) t.steady_from = steps[warm_up].iteration;
  t.seconds_per_iteration_steady = steady.seconds();
  t.tokens_per_second_steady = rate(tokens, steady.seconds_per_batch());
  t.seconds_per_iteration_median = median(std::move(seconds));
  t.tokens_per_second_median = rate(tokens, median(std::move(seconds_per_batch)));
  return t;
}

}  // namespace tally::train
