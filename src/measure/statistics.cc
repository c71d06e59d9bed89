#include "src/measure/statistics.h"

#include <algorithm>

namespace tally::train {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

int64_t warm_up_steps(int64_t steps) {
  return std::min<int64_t>(10, steps / 2);
}

namespace {

void add_steady(const std::vector<Step>& steps, double tokens, Throughput* t) {
  if (steps.empty()) return;
  const auto first = static_cast<size_t>(warm_up_steps(static_cast<int64_t>(steps.size())));
  double sum = 0;
  for (size_t i = first; i < steps.size(); ++i) sum += steps[i].seconds;
  t->steady_from = steps[first].iteration;
  t->seconds_per_iteration_steady = sum / static_cast<double>(steps.size() - first);
  if (sum > 0) t->tokens_per_second_steady = tokens / t->seconds_per_iteration_steady;
}

}  // namespace

Throughput throughput(const std::vector<Interval>& intervals, const std::vector<Step>& steps,
                      int64_t tokens_per_step) {
  Throughput t;
  const auto tokens = static_cast<double>(tokens_per_step);
  if (!intervals.empty()) {
    double sum = 0;
    for (const Interval& i : intervals) sum += i.seconds_per_iteration;
    t.seconds_per_iteration = sum / static_cast<double>(intervals.size());
  }
  if (intervals.empty() && !steps.empty()) {
    for (const Step& s : steps) t.seconds_per_iteration += s.seconds;
    t.seconds_per_iteration /= static_cast<double>(steps.size());
  }
  if (t.seconds_per_iteration > 0) t.tokens_per_second = tokens / t.seconds_per_iteration;
  add_steady(steps, tokens, &t);
  std::vector<double> seconds;
  seconds.reserve(steps.size());
  for (const Step& s : steps) seconds.push_back(s.seconds);
  t.seconds_per_iteration_median = median(std::move(seconds));
  if (t.seconds_per_iteration_median > 0)
    t.tokens_per_second_median = tokens / t.seconds_per_iteration_median;
  return t;
}

}  // namespace tally::train
