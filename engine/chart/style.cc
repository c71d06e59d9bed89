#include "engine/chart/style.h"

#include <fmt/format.h>

#include <array>

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

}  // namespace tally::chart
