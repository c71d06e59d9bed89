// Reads numbers as Python does.
#pragma once

#include <optional>
#include <string_view>

namespace tally {

// Python's float(text). Nothing where Python would raise ValueError.
std::optional<double> python_float(std::string_view text);

}  // namespace tally
