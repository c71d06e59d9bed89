// Simulated measurements: random numbers of three shapes, the same on every machine.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/statistics/descriptive.h"
#include "engine/statistics/random.h"

namespace simulated {

using tally::statistics::Random;
using tally::statistics::Sample;

inline double normal(Random& random) {  // Box and Muller
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * 3.14159265358979323846 * random.uniform());
}

struct Distribution {
  std::string name;
  std::function<double(Random&)> draw;
  double median = 0, mean = 0;
};

inline std::vector<Distribution> distributions() {
  const auto bimodal = [](Random& random) {
    return (random.uniform() < 0.5 ? -3.0 : 3.0) + normal(random);
  };
  return {
      {"normal", normal, 0, 0},
      {"log-normal", [](Random& random) { return std::exp(normal(random)); }, 1, std::exp(0.5)},
      {"bimodal", bimodal, 0, 0},
  };
}

inline Sample draw(const Distribution& distribution, size_t n, Random& random) {
  Sample sample;
  for (size_t i = 0; i < n; ++i) sample.push_back(distribution.draw(random));
  return sample;
}

}  // namespace simulated
