// A waterfall: bars of which each begins where the one before it ended, from nothing to the whole.
#pragma once

#include <string>
#include <vector>

#include "engine/chart/svg.h"

namespace tally {

struct WaterfallRow {
  std::string label, text;  // before and behind the bar
  double from = 0, to = 0;  // to < from: it takes away
};

std::string waterfall_svg(const std::string& title, const std::vector<WaterfallRow>& rows,
                          const SvgOptions& options = {});

}  // namespace tally
