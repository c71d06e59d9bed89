// The time of a step as bars that add up to it, as a program left them in a JSON file
// (`results.explain` or `explain`, docs/evidence.md), and why one step takes longer than another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/chart/svg.h"
#include "engine/report/grid.h"

namespace tally {

struct TimeBar {
  std::string name;   // "gemm_limit"
  std::string title;  // a longer one
  double seconds = 0;
};

struct TimeWaterfall {
  double seconds = 0;         // the sum of the bars
  std::string throttling;     // what held the clocks down; empty: nothing, or unknown
  std::vector<TimeBar> bars;  // in the order of the file
};

// Reads a JSON file. An error says that it cannot be read, or what is wrong with its bars. Empty:
// it has none.
Status read_waterfall(const std::string& path, std::optional<TimeWaterfall>* out);
// The waterfalls of a folder's JSON files. Files that are no JSON are left out.
Status waterfalls_in(const std::string& folder, std::vector<TimeWaterfall>* out);
// The mean of repeats, of which there is one at least.
TimeWaterfall mean_of(const std::vector<TimeWaterfall>& repeats);

std::string draw(const TimeWaterfall& waterfall, const std::string& title,
                 const SvgOptions& options);

// A bar's part in the difference of two steps. A bar that one lacks has no time there.
struct TimeChange {
  TimeBar base, other;
  double seconds() const { return other.seconds - base.seconds; }
};
// The largest first. They add up to the difference.
std::vector<TimeChange> changes_between(const TimeWaterfall& base, const TimeWaterfall& other);
// "B is 9.0 % slower than A: 5.1 % clocks (power cap), 3.0 % messages". Percent of A's step.
std::string why_sentence(const std::string& base_name, const TimeWaterfall& base,
                         const std::string& other_name, const TimeWaterfall& other);
Grid why_grid(const TimeWaterfall& base, const TimeWaterfall& other);

}  // namespace tally
