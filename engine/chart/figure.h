// A figure: a chart's content, ready to be drawn: panels, series and points with their intervals.
// Everything here has been read from a table; the writers of pictures compute no results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

struct ChartPoint {
  double x = 0;  // on an axis with categories: the category's index
  double y = 0;
  std::optional<double> low, high;  // the ends of the interval
};

struct Series {
  size_t index = 0;  // into Figure::series
  std::vector<ChartPoint> points;
  bool published = false;  // not of the table
};

// One panel of a figure. A figure without facets has one panel without a title.
struct Panel {
  std::string title;
  std::vector<Series> series;
};

struct Axis {
  std::string title;  // "tps", or the column's own title
  std::string unit;   // "tokens/s"; empty if there is none, or if the title says it
  bool logarithmic = false;
  bool from_zero = false;               // 0 is on the axis
  std::vector<std::string> categories;  // not empty: the axis has these places and no numbers
};

struct Figure {
  std::string name;
  std::string title;
  ChartKind kind = ChartKind::line;
  Axis x, y;
  std::string series_title;         // "precision"; empty: the chart has no series
  std::vector<std::string> series;  // names, for the legend
  bool columns_are_series = false;  // the name of a series says which column of y it is
  std::vector<Panel> panels;        // all have the same axes
  ChartIdeal ideal = ChartIdeal::none;
  bool less_is_better = false;  // decides at which series the ideal line begins
  std::string interval;  // what the intervals are, as "95 % confidence interval"; empty: none
  std::vector<std::string> notes;  // below the chart: "1 row failed and is not drawn"
};

}  // namespace tally
