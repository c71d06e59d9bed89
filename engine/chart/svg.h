// Draws figures as SVG, and as PNG through librsvg.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/chart/figure.h"

namespace tally {

// Draws a figure as SVG: real text, no scripts, nothing fetched, the same bytes every time.

struct SvgOptions {
  // Begins the ids in the drawing. Drawings in one page need different ones. Letters and digits.
  std::string id = "chart";
  // With an XML declaration and its own size; otherwise the drawing is for an HTML page, which sets
  // its colours by the classes `paper`, `ink`, `axis` and `grid`.
  bool standalone = true;
  double scale = 1;    // size in pixels for each unit
  double width = 720;  // in units, of which letters have 12
};

std::string svg(const Figure& figure, const SvgOptions& options = {});

// Turns SVG into PNG through librsvg, which is opened when it is needed.

// An error says if librsvg is not installed.
Status png_of_svg(const std::string& svg, std::string* png);

}  // namespace tally
