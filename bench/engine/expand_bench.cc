// How long expansion and the plan take, and how much memory a point costs.
//   expand_bench            both cases of the goals: 1,000,000 text points, 10x10x10 with 5 python
//   values expand_bench N PYTHON   10^N points with PYTHON python parameters each
// Prints one line a case: points, seconds for the whole plan, peak bytes a point.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/plan/plan.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Peak resident memory so far, in bytes.
double peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

// `digits` parameters of ten values and `scripts` python values computed from them.
tally::Benchmark make_benchmark(int digits, int scripts) {
  tally::Benchmark benchmark;
  benchmark.name.value = "bench";
  tally::ParameterSet set;
  set.name.value = "space";
  std::string sum = "0";
  for (int i = 0; i < digits; ++i) {
    tally::Parameter p;
    p.name.value = std::string(1, 'p').append(std::to_string(i));
    p.value.value = "0,1,2,3,4,5,6,7,8,9";
    sum.append("+$").append(p.name.value);
    set.parameters.push_back(p);
  }
  for (int i = 0; i < scripts; ++i) {
    tally::Parameter p;
    p.name.value = std::string(1, 'q').append(std::to_string(i));
    p.value.value = std::string(sum).append("+").append(std::to_string(i));
    p.mode = tally::Mode::python;
    set.parameters.push_back(p);
  }
  benchmark.parameter_sets["space"] = set;
  tally::Step step;
  step.name.value = "run";
  step.use.push_back({"space", {}});
  benchmark.steps.push_back(step);
  return benchmark;
}

void measure(int digits, int scripts) {
  const tally::Benchmark benchmark = make_benchmark(digits, scripts);
  const double before = peak();
  const auto start = Clock::now();
  tally::TextPool pool;
  const auto evaluator = tally::make_evaluator("");
  tally::Expander expander(benchmark, {}, *evaluator, pool, {});
  tally::Diagnostics diagnostics;
  const tally::Plan plan = tally::make_plan(benchmark, expander, diagnostics);
  const double seconds = seconds_since(start);
  std::printf("%zu points, %d text and %d python parameters: plan %.3f s, %.0f bytes a point\n",
              plan.workpackages.size(), digits, scripts, seconds,
              (peak() - before) / static_cast<double>(plan.workpackages.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    measure(std::atoi(argv[1]), std::atoi(argv[2]));
    return 0;
  }
  measure(3, 5);
  measure(6, 0);
  return 0;
}
