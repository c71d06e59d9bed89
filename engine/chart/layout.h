// Where the parts of a figure are: the panels, their axes, the legend. Private to chart/.
#pragma once

#include <string>
#include <vector>

#include "engine/chart/figure.h"
#include "engine/chart/ticks.h"

namespace tally::chart {

constexpr double kWidth = 720;
constexpr double kFont = 12;       // of labels
constexpr double kTitleFont = 15;  // of the figure's title
constexpr double kEdge = 10;       // left free at the edges

struct Rectangle {
  double x = 0, y = 0, width = 0, height = 0;
};

enum class LegendSign { series, ideal, interval, heading };
struct LegendEntry {
  LegendSign sign = LegendSign::series;
  size_t series = 0;
  std::string text;
  double x = 0, y = 0;  // of the sign's left end; y is the middle of the line
};

struct CategoryLabels {
  bool slanted = false;
  size_t every = 1;   // every how many a label is drawn
  double height = 0;  // below the axis
};

struct Layout {
  double height = 0;
  double title_y = 0;  // baseline; 0: no title
  std::vector<LegendEntry> legend;
  std::vector<Rectangle> plots;  // the area inside the axes, one for each panel
  std::vector<bool> has_y_title;
  double y_title_x = 0;  // left of the plot, from its left edge
  double x_title_y = 0;  // below the plot, from its lower edge
  Scale x, y;            // x has no ticks if the axis has categories
  CategoryLabels categories;
  std::vector<std::string> notes;  // lines
  double notes_y = 0;              // baseline of the first
};

Layout lay_out(const Figure& figure);

// Where the line to compare with ends: at the last point of the series, or of what was published.
double ideal_end(const Panel& panel, const Series& series);
// The label of a category as it is drawn.
std::string category_label(const std::string& category);
// "tps [tokens/s, ×10⁶]"
std::string axis_title(const Axis& axis, const Scale& scale);

}  // namespace tally::chart
