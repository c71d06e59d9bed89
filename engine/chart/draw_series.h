// Draws the series of one panel and the signs of the legend. Private to chart/.
#pragma once

#include <string>

#include "engine/chart/figure.h"
#include "engine/chart/layout.h"

namespace tally::chart {

std::string draw_series(const Figure& figure, const Layout& layout, size_t panel);
std::string legend_sign(const Figure& figure, const LegendEntry& entry);

}  // namespace tally::chart
