#include "src/measure/phases.h"

#include <algorithm>

namespace tally::train {

std::array<PhaseStatistics, step_phases> phase_statistics(const std::vector<PhaseSeconds>& steps,
                                                          size_t first) {
  std::array<PhaseStatistics, step_phases> found{};
  for (size_t phase = 0; phase < step_phases; ++phase) {
    PhaseStatistics& s = found[phase];
    s.min = s.max = steps.at(first)[phase];
    for (size_t step = first; step < steps.size(); ++step) {
      const double seconds = steps[step][phase];
      s.mean += seconds / static_cast<double>(steps.size() - first);
      s.min = std::min(s.min, seconds);
      s.max = std::max(s.max, seconds);
    }
  }
  return found;
}

}  // namespace tally::train
