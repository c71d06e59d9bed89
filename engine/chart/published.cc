#include "engine/chart/from_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/python/value.h"

namespace tally {
namespace {

// The position of a category on the axis, which gets it if it is new.
double category_position(const std::string& name, std::vector<std::string>* categories) {
  const auto found = std::find(categories->begin(), categories->end(), name);
  const auto position = found - categories->begin();
  if (found == categories->end()) categories->push_back(name);
  return static_cast<double>(position);
}

Status points_of(const Chart& chart, const PublishedSeries& published, bool by_name, Figure* figure,
                 std::vector<ChartPoint>* points) {
  for (const PublishedPoint& one : published.points) {
    ChartPoint point{0, one.y, {}, {}};
    if (by_name) {
      point.x = category_position(one.x, &figure->x.categories);
    } else {
      const auto x = make_value(one.x, ValueType::floating);
      if (!x || !std::isfinite(x->as_double())) {
        return Status::error(fmt::format("published '{}': x is '{}', and '{}' has numbers",
                                         published.name.value, one.x, chart.x.value));
      }
      point.x = x->as_double();
    }
    if ((chart.log_x && point.x <= 0) || (chart.log_y && point.y <= 0)) {
      return Status::error(fmt::format(
          "published '{}' has a number that is not positive, which a logarithmic axis cannot show",
          published.name.value));
    }
    points->push_back(point);
  }
  return Status::ok();
}

}  // namespace

Status add_published(const Chart& chart, bool by_name, const std::vector<std::string>& panel_values,
                     Figure* figure) {
  // Rows without a series get a name, too: the legend now has several.
  if (!chart.published.empty() && figure->series.empty() && chart.series.value.empty())
    figure->series.push_back(figure->y.title);
  for (const PublishedSeries& published : chart.published) {
    Series series{figure->series.size(), {}, true};
    TRY(points_of(chart, published, by_name, figure, &series.points));
    bool drawn = false;
    for (size_t i = 0; i < figure->panels.size(); ++i) {
      if (!published.facet.empty() &&
          (i >= panel_values.size() || panel_values[i] != published.facet)) {
        continue;
      }
      figure->panels[i].series.push_back(series);
      drawn = true;
    }
    if (drawn) figure->series.push_back(published.name.value);
  }
  return Status::ok();
}

}  // namespace tally
