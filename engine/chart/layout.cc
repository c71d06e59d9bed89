#include "engine/chart/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "engine/base/text.h"
#include "engine/chart/markup.h"

namespace tally::chart {
namespace {

constexpr double kTick = 5;         // length of a tick, and its distance from the label
constexpr double kLegendLine = 18;  // height
constexpr double kSign = 30;        // width of a legend's sign
constexpr double kNoteFont = 11;
constexpr double kPanelWidth = 240;   // with its axis, at least
constexpr double kSlant = 0.6;        // radians
constexpr double kLongestLabel = 14;  // of a category, in units of the font's size

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

struct Ranges {
  Range x, y;
  std::set<double> x_values;  // the first of them
  bool whole_x = true;        // all are whole numbers
};

Ranges ranges_of(const Figure& figure) {
  Ranges out;
  for (const Panel& panel : figure.panels) {
    for (const Series& series : panel.series) {
      for (const ChartPoint& point : series.points) {
        out.x.take(point.x);
        out.whole_x = out.whole_x && point.x == std::floor(point.x);
        if (out.x_values.size() < 30) out.x_values.insert(point.x);
        out.y.take(point.y);
        if (point.low) out.y.take(*point.low);
        if (point.high) out.y.take(*point.high);
      }
    }
    if (const auto line = ideal_line(figure, panel)) {
      const double end = ideal_at(figure.ideal, line->first, line->end);
      if (std::isfinite(end)) out.y.take(end);
    }
  }
  return out;
}

double widest_label(const Scale& scale) {
  double width = 0;
  for (const Tick& tick : scale.ticks) width = std::max(width, text_width(tick.label));
  return width * kFont;
}

Scale y_scale(const Figure& figure, Range range, double height) {
  const size_t most = static_cast<size_t>(std::max(2.0, height / 42));
  if (range.empty()) return {};
  if (figure.y.logarithmic) return log_scale(range.low, range.high, most);
  if (figure.y.from_zero) range.take(0);
  return linear_scale(range.low, range.high, most, true);
}

// Whether the labels of a horizontal axis have room beside each other.
bool labels_fit(const Scale& scale, double width) {
  double end = -std::numeric_limits<double>::infinity();
  for (const Tick& tick : scale.ticks) {
    const double half = text_width(tick.label) * kFont / 2;
    const double middle = scale.at(tick.value) * width;
    if (middle - half < end + 10) return false;
    end = middle + half;
  }
  return true;
}

bool labels_differ(const Scale& scale) {
  for (size_t i = 1; i < scale.ticks.size(); ++i)
    if (scale.ticks[i].label == scale.ticks[i - 1].label) return false;
  return true;
}

void pad(Scale* scale) {
  if (scale->logarithmic) {
    const double by = std::pow(scale->high / scale->low, 0.03);
    scale->low /= by;
    scale->high *= by;
    return;
  }
  const double by = (scale->high - scale->low) * 0.03;
  scale->low -= by;
  scale->high += by;
}

Scale x_scale(const Figure& figure, const Ranges& ranges, double width) {
  if (!figure.x.categories.empty()) {
    Scale scale;
    scale.low = -0.5;
    scale.high = static_cast<double>(figure.x.categories.size()) - 0.5;
    return scale;
  }
  if (ranges.x.empty()) return {};
  // Few values, as numbers of GPUs: each has its tick.
  if (ranges.x_values.size() > 1 && ranges.x_values.size() <= 12) {
    const std::vector<double> positions{ranges.x_values.begin(), ranges.x_values.end()};
    Scale scale = figure.x.logarithmic ? log_scale(ranges.x.low, ranges.x.high, 10, positions)
                                       : linear_scale_at(positions);
    pad(&scale);
    if (labels_differ(scale) && labels_fit(scale, width)) return scale;
  }
  size_t most = 10;
  // Between whole numbers, as numbers of GPUs, there are no ticks.
  if (ranges.whole_x && ranges.x.high - ranges.x.low < 10)
    most = std::max<size_t>(1, static_cast<size_t>(ranges.x.high - ranges.x.low));
  for (;; --most) {
    Scale scale = figure.x.logarithmic ? log_scale(ranges.x.low, ranges.x.high, most)
                                       : linear_scale(ranges.x.low, ranges.x.high, most, false);
    pad(&scale);
    if (most <= 2 || labels_fit(scale, width)) return scale;
  }
}

CategoryLabels category_labels(const std::vector<std::string>& categories, double width) {
  CategoryLabels out;
  double widest = 0;
  for (const std::string& category : categories)
    widest = std::max(widest, text_width(category_label(category)) * kFont);
  const double slot = width / static_cast<double>(categories.size());
  out.slanted = widest > slot - 8;
  out.height = out.slanted ? widest * std::sin(kSlant) + kFont : kFont;
  if (out.slanted) out.every = static_cast<size_t>(std::ceil(kFont * 1.6 / slot));
  return out;
}

// Places the entries from left to right, in as many lines as they need. Returns the lower edge.
double place_legend(const Figure& figure, double y, double width,
                    std::vector<LegendEntry>* legend) {
  if (!figure.series.empty() && !figure.series_title.empty())
    legend->push_back({LegendSign::heading, 0, figure.series_title + ":"});
  for (size_t i = 0; i < figure.series.size(); ++i)
    legend->push_back({LegendSign::series, i, figure.series[i]});
  if (figure.ideal != ChartIdeal::none) legend->push_back({LegendSign::ideal, 0, "ideal"});
  if (!figure.interval.empty()) legend->push_back({LegendSign::interval, 0, figure.interval});
  if (legend->empty()) return y;
  double x = kEdge;
  double middle = y + kLegendLine / 2;
  for (LegendEntry& entry : *legend) {
    entry.text = shortened(entry.text, (width - 2 * kEdge - kSign) / kFont);
    const double sign = entry.sign == LegendSign::heading ? 0 : kSign;
    const double own = sign + text_width(entry.text) * kFont;
    if (x > kEdge && x + own > width - kEdge) {
      x = kEdge;
      middle += kLegendLine;
    }
    entry.x = x;
    entry.y = middle;
    x += own + 16;
  }
  return middle + kLegendLine / 2 + 6;
}

// Breaks texts at blanks into lines that fit.
std::vector<std::string> wrapped(const std::vector<std::string>& texts, double width) {
  const double kMost = (width - 2 * kEdge) / kNoteFont;
  std::vector<std::string> lines;
  for (const std::string& text : texts) {
    std::string line;
    for (const std::string& word : split_strip(one_line(text), " ")) {
      const std::string longer = line.empty() ? word : line + " " + word;
      if (!line.empty() && text_width(longer) > kMost) {
        lines.push_back(line);
        line = word;
      } else {
        line = longer;
      }
    }
    if (!line.empty()) lines.push_back(shortened(line, kMost));
  }
  return lines;
}

}  // namespace

std::optional<IdealLine> ideal_line(const Figure& figure, const Panel& panel) {
  if (figure.ideal == ChartIdeal::none) return {};
  std::optional<IdealLine> line;
  double end = 0;
  for (const Series& series : panel.series) {
    if (series.points.empty()) continue;
    end = std::max(end, series.points.back().x);
    if (series.published) continue;
    const ChartPoint& own = series.points.front();
    const bool better = !line || own.x < line->first.x ||
                        (own.x == line->first.x &&
                         (figure.less_is_better ? own.y < line->first.y : own.y > line->first.y));
    if (better) line = IdealLine{own, 0};
  }
  if (!line || end == line->first.x) return {};
  line->end = end;
  return line;
}

double ideal_at(ChartIdeal ideal, const ChartPoint& first, double x) {
  if (ideal == ChartIdeal::linear) return first.y * x / first.x;
  if (ideal == ChartIdeal::inverse) return first.y * first.x / x;
  return first.y;
}

std::string category_label(const std::string& category) {
  return shortened(category, kLongestLabel);
}

std::string axis_title(const Axis& axis, const Scale& scale) {
  std::string unit = axis.unit;
  if (scale.exponent != 0) unit += (unit.empty() ? "" : ", ") + power_label(scale.exponent);
  return unit.empty() ? axis.title : fmt::format("{} [{}]", axis.title, unit);
}

Layout lay_out(const Figure& figure, double all) {
  Layout out;
  out.width = all;
  double top = kEdge;
  if (!figure.title.empty()) {
    out.title_y = top + kTitleFont;
    top += kTitleFont + 12;
  }
  top = place_legend(figure, top, all, &out.legend) + 4;

  const Ranges ranges = ranges_of(figure);
  const size_t count = std::max<size_t>(1, figure.panels.size());
  const auto fitting = static_cast<size_t>(std::max(1.0, all / kPanelWidth));
  const size_t columns = std::min<size_t>(count == 1 ? 1 : count <= 4 ? 2 : 3, fitting);
  const double plot_height = count == 1 ? 300 : 170;
  out.y = y_scale(figure, ranges.y, plot_height);
  const double labels = widest_label(out.y) + 2 * kTick;
  const double title_width = kFont + 8;
  const double left = kEdge + title_width;
  const double column = (all - left - kEdge) / static_cast<double>(columns);
  constexpr double kRight = 14;
  double before = labels;  // the room left of each plot
  double width = column - before - kRight;
  if (!figure.x.categories.empty()) {
    out.categories = category_labels(figure.x.categories, width);
    if (out.categories.slanted) {  // the first label reaches to the left
      double first = text_width(category_label(figure.x.categories.front())) * kFont;
      before = std::max(before, first * std::cos(kSlant) - title_width / 2);
      width = column - before - kRight;
      out.categories = category_labels(figure.x.categories, width);
    }
  }
  out.x = x_scale(figure, ranges, width);
  const double below = figure.x.categories.empty() ? kFont : out.categories.height;
  out.x_title_y = kTick * 2 + below + 14;
  for (size_t i = 0; i < count; ++i) {
    const bool titled = !figure.panels.empty() && !figure.panels[i].title.empty();
    if (i % columns == 0 && i > 0) top += plot_height + out.x_title_y + 14;
    if (i % columns == 0 && titled) top += kFont + 8;
    out.plots.push_back(
        {left + static_cast<double>(i % columns) * column + before, top + 4, width, plot_height});
    out.has_y_title.push_back(i % columns == 0);
  }
  double bottom = top + 4 + plot_height + out.x_title_y + 8;
  out.notes = wrapped(figure.notes, all);
  out.notes_y = bottom + kNoteFont;
  if (!out.notes.empty()) bottom += static_cast<double>(out.notes.size()) * (kNoteFont + 4) + 4;
  out.height = std::ceil(bottom);
  return out;
}

}  // namespace tally::chart
