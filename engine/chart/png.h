// Turns SVG into PNG through librsvg, which is opened when it is needed.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace tally {

// An error says if librsvg is not installed.
Status png_of_svg(const std::string& svg, std::string* png);

}  // namespace tally
