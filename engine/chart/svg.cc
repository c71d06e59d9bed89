#include "engine/chart/svg.h"

#include <fmt/format.h>

#include "engine/chart/layout.h"
#include "engine/chart/markup.h"

namespace tally {
namespace {

using chart::coordinate;
using chart::kEdge;
using chart::kFont;
using chart::Layout;
using chart::Rectangle;

constexpr const char* kAxis = "class=\"axis\" stroke=\"#57606a\"";
constexpr double kBold = 1.12;  // how much wider bold letters are

class SvgWriter {
 public:
  SvgWriter(const Figure& figure, const SvgOptions& options)
      : figure_(figure), options_(options), layout_(chart::lay_out(figure, options.width)) {}

  std::string write() {
    head();
    if (layout_.title_y > 0) {
      const double room = (layout_.width - 2 * kEdge) / chart::kTitleFont / kBold;
      text(kEdge, layout_.title_y, shortened(figure_.title, room),
           "font-size=\"15\" font-weight=\"bold\"");
    }
    legend();
    for (size_t i = 0; i < layout_.plots.size(); ++i) panel(i);
    double y = layout_.notes_y;
    for (const std::string& note : layout_.notes) {
      text(kEdge, y, note, "font-size=\"11\"");
      y += 15;
    }
    out_ += "</g>\n</svg>\n";
    return std::move(out_);
  }

 private:
  void head() {
    if (options_.standalone) out_ += "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    const std::string height = coordinate(layout_.height);
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
        "viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-title\">\n",
        coordinate(layout_.width * options_.scale), coordinate(layout_.height * options_.scale),
        coordinate(layout_.width), height, options_.id);
    out_ += fmt::format("<title id=\"{}-title\">{}</title>\n", options_.id,
                        escaped(figure_.title.empty() ? figure_.name : figure_.title));
    out_ += fmt::format(
        "<rect class=\"paper\" width=\"{}\" height=\"{}\" fill=\"#fff\"/>\n"
        "<g class=\"ink\" fill=\"#1f2328\" font-size=\"12\" "
        "font-family=\"Arial, Helvetica, 'Liberation Sans', 'DejaVu Sans', sans-serif\">\n",
        coordinate(layout_.width), height);
  }

  void text(double x, double y, const std::string& words, const std::string& attributes = {}) {
    out_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", coordinate(x), coordinate(y),
                        attributes.empty() ? "" : " ", attributes, escaped(words));
  }

  void legend() {
    for (const chart::LegendEntry& entry : layout_.legend) {
      const double sign = entry.sign == chart::LegendSign::heading ? 0 : 30;
      out_ += chart::legend_sign(figure_, entry);
      text(entry.x + sign, entry.y + 4, entry.text);
    }
  }

  void panel(size_t index) {
    const Rectangle& plot = layout_.plots[index];
    y_axis(plot, layout_.has_y_title[index]);
    x_axis(plot);
    if (figure_.panels.empty()) return;
    const Panel& shown = figure_.panels[index];
    if (!shown.title.empty()) {
      text(plot.x, plot.y - 8, shortened(shown.title, plot.width / kFont / kBold),
           "font-weight=\"bold\"");
    }
    bool any = false;
    for (const Series& series : shown.series) any = any || !series.points.empty();
    if (!any) {
      text(plot.x + plot.width / 2, plot.y + plot.height / 2, "no values",
           "text-anchor=\"middle\"");
      return;
    }
    out_ += chart::draw_series(figure_, layout_, index);
  }

  void line(double x1, double y1, double x2, double y2, const char* attributes) {
    out_ += fmt::format("<path d=\"M{} {}L{} {}\" {}/>\n", coordinate(x1), coordinate(y1),
                        coordinate(x2), coordinate(y2), attributes);
  }

  void y_axis(const Rectangle& plot, bool with_title) {
    constexpr const char* kGrid = "class=\"grid\" stroke=\"#d8dee4\"";
    for (const Tick& tick : layout_.y.ticks) {
      const double y = plot.y + plot.height * (1 - layout_.y.at(tick.value));
      line(plot.x, y, plot.x + plot.width, y, tick.value == 0 ? kAxis : kGrid);
      text(plot.x - 7, y + 4, tick.label, "text-anchor=\"end\"");
    }
    if (!with_title) return;
    const double room = plot.height / kFont;
    const std::string title = shortened(chart::axis_title(figure_.y, layout_.y), room + 4);
    const double x = kEdge + kFont;
    const double y = plot.y + plot.height / 2;
    text(x, y, title,
         fmt::format("text-anchor=\"middle\" transform=\"rotate(-90 {} {})\"", coordinate(x),
                     coordinate(y)));
  }

  void x_axis(const Rectangle& plot) {
    const double bottom = plot.y + plot.height;
    line(plot.x, bottom, plot.x + plot.width, bottom, kAxis);
    for (const Tick& tick : layout_.x.ticks) {
      const double x = plot.x + plot.width * layout_.x.at(tick.value);
      line(x, bottom, x, bottom + 4, kAxis);
      text(x, bottom + 17, tick.label, "text-anchor=\"middle\"");
    }
    const std::vector<std::string>& categories = figure_.x.categories;
    for (size_t i = 0; i < categories.size(); i += layout_.categories.every) {
      const double x = plot.x + plot.width * layout_.x.at(static_cast<double>(i));
      const std::string label = chart::category_label(categories[i]);
      if (layout_.categories.slanted) {
        text(x + 4, bottom + 15, label,
             fmt::format("text-anchor=\"end\" transform=\"rotate(-34 {} {})\"", coordinate(x + 4),
                         coordinate(bottom + 15)));
      } else {
        text(x, bottom + 17, label, "text-anchor=\"middle\"");
      }
    }
    const std::string title = chart::axis_title(figure_.x, layout_.x);
    text(plot.x + plot.width / 2, bottom + layout_.x_title_y, shortened(title, plot.width / kFont),
         "text-anchor=\"middle\"");
  }

  const Figure& figure_;
  const SvgOptions& options_;
  Layout layout_;
  std::string out_;
};

}  // namespace

std::string svg(const Figure& figure, const SvgOptions& options) {
  return SvgWriter(figure, options).write();
}

}  // namespace tally
