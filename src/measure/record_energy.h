// The energy of a run as its record and its last lines tell it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "src/measure/record.h"

namespace tally::train {

// The energy of all GPUs of the run in the steps after the warm-up.
struct EnergyTotals {
  double joules = 0;
  double watts = 0;  // the sum of the GPUs' means
  // Tokens/s after the warm-up over these watts.
  double tokens_per_watt_hour = 0;
  // Energy for the 20 million tokens of the JUPITER benchmark suite's NLP benchmark.
  double watt_hours_to_report = 0;
};
constexpr double report_tokens = 20e6;
// Empty where a GPU's energy is not known. A GPU that several ranks share counts once.
std::optional<EnergyTotals> energy_totals(const Record& record);

nlohmann::ordered_json energy_json(const Record& record);
// A line, or none where a run has no GPU.
std::string energy_summary(const Record& record);

}  // namespace tally::train
