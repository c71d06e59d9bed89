#include "engine/workflow/chart_words.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/base/text.h"
#include "engine/python/value.h"
#include "engine/workflow/table_names.h"

namespace tally {

void set_chart_kind(const std::string& word, Chart* chart) {
  if (word == "bar") chart->kind = ChartKind::bar;
  if (word == "line") chart->kind = ChartKind::line;
  if (word == "scatter") chart->kind = ChartKind::scatter;
  if (word == "curve") chart->kind = ChartKind::curve;
}

void set_chart_ideal(const std::string& word, Chart* chart) {
  if (word == "none") chart->ideal = ChartIdeal::none;
  if (word == "linear") chart->ideal = ChartIdeal::linear;
  if (word == "inverse") chart->ideal = ChartIdeal::inverse;
  if (word == "constant") chart->ideal = ChartIdeal::constant;
}

void set_chart_error(const std::string& word, Chart* chart) {
  const Uncertainty error = uncertainty_of(word);
  if (word == "none" || error != Uncertainty::none) chart->error = error;
}

void set_chart_log(const std::string& word, Chart* chart) {
  if (word != "none" && word != "x" && word != "y" && word != "xy") return;
  chart->log_x = word[0] == 'x';
  chart->log_y = word == "y" || word == "xy";
}

std::vector<Text> drawn_columns(const Text& y,
                                const std::function<bool(const std::string&)>& is_column) {
  if (is_column(y.value)) return {y};
  std::vector<Text> names;
  for (std::string& name : split_strip(y.value, ","))
    if (!name.empty()) names.push_back({std::move(name), y.mark});
  return names;
}

Status read_published_points(std::string_view text, std::vector<PublishedPoint>* points) {
  points->clear();
  for (const std::string& part : split_strip(text, ",")) {
    const size_t colon = part.rfind(':');
    PublishedPoint point;
    if (colon != std::string::npos) point.x = strip(std::string_view(part).substr(0, colon));
    const std::string y(
        colon == std::string::npos ? "" : strip(std::string_view(part).substr(colon + 1)));
    const auto number = make_value(y, ValueType::floating);
    if (point.x.empty() || !number || !std::isfinite(number->as_double()))
      return Status::error(fmt::format("'{}' is not a point, which is written 'x: number'", part));
    for (const PublishedPoint& other : *points)
      if (other.x == point.x) return Status::error(fmt::format("x = {} has two numbers", point.x));
    point.y = number->as_double();
    points->push_back(std::move(point));
  }
  return Status::ok();
}

}  // namespace tally
