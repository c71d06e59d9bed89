// The places of the parts of a figure: the panels, their axes, the legend.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/chart/figure.h"
#include "engine/chart/ticks.h"

namespace tally::chart {

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
  double width = 0, height = 0;
  double title_y = 0;  // baseline; 0: no title
  std::vector<LegendEntry> legend;
  std::vector<Rectangle> plots;  // the area inside the axes, one for each panel
  std::vector<bool> has_y_title;
  double x_title_y = 0;  // below the plot, from its lower edge
  Scale x, y;            // x has no ticks if the axis has categories
  CategoryLabels categories;
  std::vector<std::string> notes;  // lines
  double notes_y = 0;              // baseline of the first
};

Layout lay_out(const Figure& figure, double width);

// The one line of a panel to compare with. It begins at the best of the points where series begin
// furthest to the left, and ends at the last point of all.
struct IdealLine {
  ChartPoint first;
  double end = 0;  // x
};
// Returns nothing for a figure or a panel without one.
std::optional<IdealLine> ideal_line(const Figure& figure, const Panel& panel);
// Its value at `x`.
double ideal_at(ChartIdeal ideal, const ChartPoint& first, double x);
// The label of a category as it is drawn.
std::string category_label(const std::string& category);
// "tps [tokens/s, ×10⁶]"
std::string axis_title(const Axis& axis, const Scale& scale);

// How series are told apart: by colour, and without colour by markers and dashes.

// The colours of Okabe and Ito, which people with colour-blindness can tell apart. Dark ones first.
const char* color(size_t series);
// A value of stroke-dasharray. Empty: a line without gaps.
const char* dashes(size_t series);
// The path of a marker with its centre at (x, y).
std::string marker(size_t series, double x, double y);
// Attributes that draw a marker: filled, or its outline alone.
std::string marker_paint(size_t series);
// Attributes that fill a series' bars. Where the colours begin again, they are lighter.
std::string bar_paint(size_t series);

// A coordinate with at most two decimals: equal on every machine.
std::string coordinate(double value);

std::string draw_series(const Figure& figure, const Layout& layout, size_t panel);
std::string legend_sign(const Figure& figure, const LegendEntry& entry);

}  // namespace tally::chart
