#include "engine/chart/waterfall.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/chart/layout.h"
#include "engine/chart/markup.h"

namespace tally {
namespace {

using chart::coordinate;
using chart::kEdge;
using chart::kFont;

constexpr double kRow = 20;
constexpr double kBar = 14;
constexpr double kHead = 34;

std::string text_at(double x, double y, const std::string& words, const char* attributes = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", coordinate(x), coordinate(y),
                     attributes, escaped(words));
}

// The part of the drawing in which bars are.
struct Area {
  double left = 0, width = 0;
  double low = 0, high = 0;  // values at its ends
  double at(double value) const {
    return left + (high > low ? (value - low) / (high - low) : 0) * width;
  }
};

Area area_of(const std::vector<WaterfallRow>& rows, double width) {
  constexpr double kGap = 8;
  double label = 0;
  double text = 0;
  Area area;
  for (const WaterfallRow& row : rows) {
    label = std::max(label, text_width(row.label) * kFont);
    text = std::max(text, text_width(row.text) * kFont);
    area.low = std::min({area.low, row.from, row.to});
    area.high = std::max({area.high, row.from, row.to});
  }
  // The labels of a narrow drawing are shortened.
  label = std::min(label, width / 2.5);
  area.left = kEdge + label + kGap;
  area.width = std::max(width - kEdge - kGap - text - area.left, 0.0);
  return area;
}

}  // namespace

std::string waterfall_svg(const std::string& title, const std::vector<WaterfallRow>& rows,
                          const SvgOptions& options) {
  const double height = kHead + kRow * static_cast<double>(rows.size()) + kEdge;
  const Area area = area_of(rows, options.width);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" role=\"img\" aria-labelledby=\"{2}-title\">\n<title id=\"{2}-title\">{3}</title>\n"
      "<rect class=\"paper\" width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
      "<g class=\"ink\" fill=\"#1f2328\" font-size=\"12\" "
      "font-family=\"Arial, Helvetica, 'Liberation Sans', 'DejaVu Sans', sans-serif\">\n",
      coordinate(options.width), coordinate(height), options.id, escaped(title));
  out += text_at(kEdge, 20, shortened(title, (options.width - 2 * kEdge) / kFont / 1.12),
                 " font-weight=\"bold\"");
  double y = kHead;
  for (size_t i = 0; i < rows.size(); ++i) {
    const WaterfallRow& row = rows[i];
    const double from = area.at(std::min(row.from, row.to));
    const double to = area.at(std::max(row.from, row.to));
    out += text_at(kEdge, y + 12, shortened(row.label, (area.left - kEdge) / kFont));
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"{}><title>{}: "
        "{}</title></rect>\n",
        coordinate(from), coordinate(y + 1), coordinate(std::max(to - from, 0.75)),
        coordinate(kBar), chart::color(row.to < row.from ? 1 : 0),
        row.to < row.from ? " fill-opacity=\"0.5\"" : "", escaped(row.label), escaped(row.text));
    out += text_at(to + 6, y + 12, row.text);
    y += kRow;
  }
  return out + "</g>\n</svg>\n";
}

}  // namespace tally
