// The phases of a training step (--time-phases) and their statistics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tally::train {

// `data`: the copy of micro batches to the device.
enum class StepPhase : uint8_t { data, forward, backward, gradient_reduction, optimizer_update };
inline constexpr size_t step_phases = 5;
inline constexpr std::array<const char*, step_phases> step_phase_names{
    "data", "forward", "backward", "gradient_reduction", "optimizer_update"};

// Seconds of each phase in one step, of all its micro batches.
using PhaseSeconds = std::array<double, step_phases>;

struct PhaseStatistics {
  double mean = 0, min = 0, max = 0;
};

// The statistics of the steps from `first` on, which exists.
std::array<PhaseStatistics, step_phases> phase_statistics(const std::vector<PhaseSeconds>& steps,
                                                          size_t first);

}  // namespace tally::train
