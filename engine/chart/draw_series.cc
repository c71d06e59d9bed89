#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "engine/chart/layout.h"
#include "engine/chart/markup.h"

namespace tally::chart {
namespace {

constexpr std::array<const char*, 7> kColors = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                "#e69f00", "#56b4e9", "#6b7280"};
constexpr std::array<const char*, 8> kDashes = {"",     "8 3",         "8 3 2 3", "2 3",
                                                "14 4", "8 3 2 3 2 3", "5 2",     "1 2"};
constexpr size_t kMarkers = 8;

}  // namespace

const char* color(size_t series) {
  return kColors[series % kColors.size()];
}

const char* dashes(size_t series) {
  return kDashes[series % kDashes.size()];
}

std::string coordinate(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string marker(size_t series, double x, double y) {
  const auto at = [](double a, double b) { return coordinate(a) + " " + coordinate(b); };
  const auto polygon = [](const std::string& start, const char* rest) {
    return "M" + start + rest + "z";
  };
  switch (series % kMarkers) {
    case 0:
      return polygon(at(x - 4, y), "a4 4 0 1 0 8 0a4 4 0 1 0 -8 0");
    case 1:
      return polygon(at(x - 3.5, y - 3.5), "h7v7h-7");
    case 2:
      return polygon(at(x, y - 4.5), "l4.5 8h-9");
    case 3:
      return polygon(at(x, y - 5), "l5 5l-5 5l-5 -5");
    case 4:
      return polygon(at(x, y + 4.5), "l4.5 -8h-9");
    case 5:
      return "M" + at(x - 4, y - 4) + "l8 8m0 -8l-8 8";
    case 6:
      return "M" + at(x - 5, y) + "h10m-5 -5v10";
    default:
      return polygon(at(x - 3.5, y - 3.5), "l7 7h-7l7 -7");  // an hourglass
  }
}

std::string marker_paint(size_t series) {
  // Every second marker is hollow, and crosses have no inside.
  const size_t shape = series % kMarkers;
  const bool crossed = shape == 5 || shape == 6;
  const std::string stroke = fmt::format("stroke=\"{}\" stroke-width=\"1.6\"", color(series));
  if (crossed) return "fill=\"none\" " + stroke;
  if (shape % 2 == 1) return "class=\"paper\" fill=\"#fff\" " + stroke;
  return fmt::format("fill=\"{}\" {}", color(series), stroke);
}

std::string bar_paint(size_t series) {
  static constexpr std::array<const char*, 4> kOpacities = {"", "0.45", "0.7", "0.25"};
  const char* opacity = kOpacities[series / kColors.size() % kOpacities.size()];
  const std::string fill = fmt::format("fill=\"{}\" stroke=\"{}\"", color(series), color(series));
  return *opacity == '\0' ? fill : fmt::format("{} fill-opacity=\"{}\"", fill, opacity);
}

namespace {

// A chart with more points has no tooltips, and its intervals are bands.
constexpr size_t kManyPoints = 400;
// A series with more points has a marker at some of them only.
constexpr size_t kManyMarkers = 60;
// A scatter chart with more points has dots in place of markers.
constexpr size_t kManyDots = 2000;

class Drawing {
 public:
  Drawing(const Figure& figure, const Layout& layout, size_t panel)
      : figure_(figure),
        panel_(figure.panels[panel]),
        plot_(layout.plots[panel]),
        x_(layout.x),
        y_(layout.y) {
    size_t points = 0;
    for (const Panel& one : figure.panels)
      for (const Series& series : one.series) points += series.points.size();
    many_ = points > kManyPoints;
    dots_ = points > kManyDots && figure.kind == ChartKind::scatter;
    if (!many_ && figure.kind == ChartKind::line) step_aside();
  }

  std::string draw() {
    ideal();
    for (const Series& series : panel_.series) {
      switch (figure_.kind) {
        case ChartKind::bar:
          bars(series);
          break;
        case ChartKind::scatter:
          intervals(series);
          markers(series);
          break;
        case ChartKind::line:
          many_ ? band(series) : intervals(series);
          line(series);
          markers(series);
          break;
        case ChartKind::curve:
          band(series);
          line(series);
          break;
      }
    }
    return std::move(out_);
  }

 private:
  double px(double value) const { return plot_.x + plot_.width * x_.at(value); }
  double px(const Series& series, double value) const {
    const auto found = aside_.find(series.index);
    return px(value) + (found == aside_.end() ? 0 : found->second);
  }

  // The ends of an interval where it is drawn, with a little room.
  bool overlap(const ChartPoint& a, const ChartPoint& b) const {
    constexpr double kRoom = 6;
    return std::abs(px(a.x) - px(b.x)) < kRoom && py(*a.high) < py(*b.low) + kRoom &&
           py(*b.high) < py(*a.low) + kRoom;
  }

  // Series whose intervals would lie on each other stand side by side, as far as there is room
  // between the positions.
  void step_aside() {
    std::vector<std::pair<size_t, const ChartPoint*>> all;
    std::set<double> positions;
    std::set<size_t> series;
    for (const Series& one : panel_.series) {
      for (const ChartPoint& point : one.points) {
        positions.insert(px(point.x));
        if (point.low && point.high) all.emplace_back(one.index, &point);
      }
    }
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = i + 1; j < all.size(); ++j)
        if (all[i].first != all[j].first && overlap(*all[i].second, *all[j].second))
          series.insert({all[i].first, all[j].first});
    if (series.empty()) return;
    double room = plot_.width;
    for (auto position = positions.begin();
         position != positions.end() && std::next(position) != positions.end(); ++position)
      if (*std::next(position) - *position > 1)
        room = std::min(room, *std::next(position) - *position);
    const auto count = static_cast<double>(series.size());
    const double step = std::min(10.0, room * 0.6 / count);
    double at = -step * (count - 1) / 2;
    for (const size_t one : series) aside_[one] = std::exchange(at, at + step);
  }
  double py(double value) const { return plot_.y + plot_.height * (1 - y_.at(value)); }
  static std::string at(double x, double y) { return coordinate(x) + " " + coordinate(y); }

  // "fp16: gpus 4, tps 34,063 (33,900 to 34,200)"
  std::string tooltip(const Series& series, const ChartPoint& point) const {
    std::string text = figure_.series.empty() ? "" : figure_.series[series.index] + ": ";
    const auto& categories = figure_.x.categories;
    const std::string x =
        categories.empty() ? number_label(point.x) : categories[static_cast<size_t>(point.x)];
    const std::string unit = figure_.y.unit.empty() ? "" : " " + figure_.y.unit;
    const std::string y = figure_.columns_are_series ? "" : figure_.y.title + " ";
    text += fmt::format("{} {}, {}{}{}", figure_.x.title, x, y, number_label(point.y), unit);
    if (point.low && point.high)
      text += fmt::format(" ({} to {})", number_label(*point.low), number_label(*point.high));
    return "<title>" + escaped(text) + "</title>";
  }

  void ideal() {
    const auto line = ideal_line(figure_, panel_);
    if (!line) return;
    const ChartPoint& first = line->first;
    constexpr int kSteps = 64;  // a hyperbola, or a line on a logarithmic axis, is bent
    std::string path;
    for (int i = 0; i <= kSteps; ++i) {
      const double part = static_cast<double>(i) / kSteps;
      const double x = x_.logarithmic ? first.x * std::pow(line->end / first.x, part)
                                      : first.x + (line->end - first.x) * part;
      path += (i == 0 ? "M" : "L") + at(px(x), py(ideal_at(figure_.ideal, first, x)));
    }
    out_ += fmt::format(
        "<path class=\"axis\" d=\"{}\" fill=\"none\" stroke=\"#57606a\" "
        "stroke-dasharray=\"1 4\" stroke-width=\"1.5\" stroke-linecap=\"round\"/>\n",
        path);
  }

  // A line with more points than pixels goes through the lowest and the highest of each pixel.
  std::vector<std::pair<double, double>> visible(const Series& series) const {
    std::vector<std::pair<double, double>> all;
    for (const ChartPoint& point : series.points)
      all.emplace_back(px(series, point.x), py(point.y));
    if (all.size() <= 1500) return all;
    std::vector<std::pair<double, double>> some;
    for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      while (end < all.size() && std::floor(all[end].first) == std::floor(all[begin].first)) ++end;
      size_t low = begin;
      size_t high = begin;
      for (size_t i = begin; i < end; ++i) {
        if (all[i].second < all[low].second) low = i;
        if (all[i].second > all[high].second) high = i;
      }
      for (size_t i : std::set<size_t>{begin, low, high, end - 1}) some.push_back(all[i]);
    }
    return some;
  }

  void line(const Series& series) {
    std::string path;
    for (const auto& [x, y] : visible(series)) path += (path.empty() ? "M" : "L") + at(x, y);
    const std::string gaps = dashes(series.index);
    out_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" "
        "stroke-linejoin=\"round\"{}/>\n",
        path, color(series.index), series.published ? "1" : "1.8",
        gaps.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", gaps));
  }

  void markers(const Series& series) {
    if (dots_) return dots(series);
    const bool thin = figure_.kind == ChartKind::line && series.points.size() > kManyMarkers;
    const size_t every = thin ? series.points.size() / 20 : 1;
    std::set<std::pair<int, int>> taken;
    std::string paths;
    out_ += "<g " + marker_paint(series.index) + ">\n";
    for (size_t i = 0; i < series.points.size(); i += every) {
      const ChartPoint& point = series.points[i];
      const double x = px(series, point.x);
      const double y = py(point.y);
      if (many_) {  // markers at one pixel are one marker
        if (taken.insert({static_cast<int>(x), static_cast<int>(y)}).second)
          paths += marker(series.index, x, y);
        continue;
      }
      out_ += fmt::format("<path d=\"{}\">{}</path>\n", marker(series.index, x, y),
                          tooltip(series, point));
    }
    if (!paths.empty()) out_ += fmt::format("<path d=\"{}\"/>\n", paths);
    out_ += "</g>\n";
  }

  void dots(const Series& series) {
    std::set<std::pair<int, int>> taken;
    std::string paths;
    for (const ChartPoint& point : series.points) {
      const std::pair<int, int> at{static_cast<int>(px(point.x)), static_cast<int>(py(point.y))};
      if (taken.insert(at).second) paths += fmt::format("M{} {}h0", at.first, at.second);
    }
    out_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"3\" "
        "stroke-linecap=\"round\"/>\n",
        paths, color(series.index));
  }

  void whisker(double x, const ChartPoint& point, const char* attributes) {
    if (!point.low || !point.high) return;
    const double low = py(*point.low);
    const double high = py(*point.high);
    out_ += fmt::format("<path d=\"M{}V{}M{}h8M{}h8\" fill=\"none\" {}/>\n", at(x, low),
                        coordinate(high), at(x - 4, low), at(x - 4, high), attributes);
  }

  void intervals(const Series& series) {
    const std::string paint =
        fmt::format("stroke=\"{}\" stroke-width=\"1.2\"", color(series.index));
    for (const ChartPoint& point : series.points)
      whisker(px(series, point.x), point, paint.c_str());
  }

  void band(const Series& series) {
    std::string there;
    std::string back;
    const size_t every = std::max<size_t>(1, series.points.size() / 1000);
    for (size_t i = 0; i < series.points.size(); i += every) {
      const ChartPoint& point = series.points[i];
      if (!point.low || !point.high) continue;
      there += (there.empty() ? "M" : "L") + at(px(point.x), py(*point.high));
      back = "L" + at(px(point.x), py(*point.low)) + back;
    }
    if (there.empty()) return;
    out_ += fmt::format("<path d=\"{}{}z\" fill=\"{}\" fill-opacity=\"0.2\"/>\n", there, back,
                        color(series.index));
  }

  void bars(const Series& series) {
    const double slot = plot_.width / static_cast<double>(figure_.x.categories.size());
    const double count = static_cast<double>(std::max<size_t>(1, figure_.series.size()));
    const double width = std::min(slot * 0.8 / count, 60.0);
    const double zero = py(0);
    for (const ChartPoint& point : series.points) {
      const double left = px(point.x) + (static_cast<double>(series.index) - count / 2) * width;
      const double y = py(point.y);
      out_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}>{}</rect>\n",
                          coordinate(left), coordinate(std::min(y, zero)), coordinate(width),
                          coordinate(std::abs(y - zero)), bar_paint(series.index),
                          tooltip(series, point));
      whisker(left + width / 2, point, "class=\"axis\" stroke=\"#1f2328\" stroke-width=\"1.4\"");
    }
  }

  const Figure& figure_;
  const Panel& panel_;
  const Rectangle& plot_;
  const Scale& x_;
  const Scale& y_;
  bool many_ = false;
  bool dots_ = false;
  std::map<size_t, double> aside_;  // by series: how far from its place
  std::string out_;
};

}  // namespace

std::string draw_series(const Figure& figure, const Layout& layout, size_t panel) {
  return Drawing(figure, layout, panel).draw();
}

std::string legend_sign(const Figure& figure, const LegendEntry& entry) {
  const std::string x = coordinate(entry.x);
  const std::string y = coordinate(entry.y);
  if (entry.sign == LegendSign::ideal) {
    return fmt::format(
        "<path class=\"axis\" d=\"M{} {}h24\" stroke=\"#57606a\" stroke-dasharray=\"1 4\" "
        "stroke-width=\"1.5\" stroke-linecap=\"round\"/>\n",
        x, y);
  }
  if (entry.sign == LegendSign::interval) {
    if (figure.kind == ChartKind::curve) {
      return fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"24\" height=\"10\" fill=\"#6b7280\" "
          "fill-opacity=\"0.3\"/>\n",
          x, coordinate(entry.y - 5));
    }
    return fmt::format(
        "<path class=\"axis\" d=\"M{} {}v12m-4 0h8m-8 -12h8\" fill=\"none\" stroke=\"#57606a\" "
        "stroke-width=\"1.2\"/>\n",
        coordinate(entry.x + 12), coordinate(entry.y - 6));
  }
  if (entry.sign == LegendSign::heading) return {};
  if (figure.kind == ChartKind::bar) {
    return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"24\" height=\"12\" {}/>\n", x,
                       coordinate(entry.y - 6), bar_paint(entry.series));
  }
  std::string out;
  if (figure.kind != ChartKind::scatter) {
    const std::string gaps = dashes(entry.series);
    out += fmt::format("<path d=\"M{} {}h24\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n", x, y,
                       color(entry.series),
                       gaps.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", gaps));
  }
  if (figure.kind != ChartKind::curve) {
    out += fmt::format("<path d=\"{}\" {}/>\n", marker(entry.series, entry.x + 12, entry.y),
                       marker_paint(entry.series));
  }
  return out;
}

}  // namespace tally::chart
