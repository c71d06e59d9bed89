// Adds a chart's published numbers to the figure of a table.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/chart/figure.h"

namespace tally {

// Each published series joins its panel, or all panels. `panel_values` are the facet's values, in
// the order of the panels; a value that no row has gets no panel. `by_name`: x has categories.
Status add_published(const Chart& chart, bool by_name, const std::vector<std::string>& panel_values,
                     Figure* figure);

}  // namespace tally
