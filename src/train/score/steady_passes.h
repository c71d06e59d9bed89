// The time for which an evaluation is measured.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "src/measure/statistics.h"
#include "src/train/run/world.h"

namespace tally::train {

struct SteadyPasses {
  double seconds = 0;  // all passes together
  int64_t passes = 0;
};

// Repeats a pass over the data until the passes took kSteadySeconds in every process. `first`: the
// seconds of the one that was done before. `pass` returns its seconds. All processes do as many.
// Collective.
template <typename Pass>
SteadyPasses repeat_until_steady(double first, World& world, const Pass& pass) {
  SteadyPasses done{first, 1};
  for (;;) {
    double least = done.seconds;
    for (const std::string& seconds : world.meeting().exchange(fmt::format("{}", done.seconds)))
      least = std::min(least, std::stod(seconds));
    if (least >= kSteadySeconds) return done;
    constexpr double kMargin = 1.05;
    constexpr double kShortest = 1e-6;  // least time of a pass
    const double mean = std::max(kShortest, least / static_cast<double>(done.passes));
    const auto more = static_cast<int64_t>(std::ceil((kMargin * kSteadySeconds - least) / mean));
    for (int64_t i = 0; i < more; ++i) done.seconds += pass();
    done.passes += more;
  }
}

}  // namespace tally::train
