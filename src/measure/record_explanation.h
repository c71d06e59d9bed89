// The time of a run's steps and where it went, as its record and its last lines tell it: a waterfall from
// the GPU's datasheet to the time of a step (docs/evidence.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/measure/record.h"

namespace tally::train {

// A bar of the waterfall. Means over ranks, of one step; less than 0: time that was gained.
struct WaterfallBar {
  std::string name, title;
  double seconds = 0;
};

struct Waterfall {
  double seconds = 0;         // a measured step: the sum of the bars
  double traced_seconds = 0;  // a traced step
  std::vector<WaterfallBar> bars;
  std::optional<double> mhz, datasheet_mhz;  // clocks of the SMs
  std::string throttling;                    // the reasons; "none"; empty: unknown
  int slowest_rank = 0;                      // the one that computed longest
};

// There are a step and an explanation of it.
Waterfall waterfall_of(const Record& record);

nlohmann::ordered_json explanation_json(const Record& record);
// The lines of a table, or none where there is no explanation.
std::string explanation_summary(const Record& record);

}  // namespace tally::train
