// Numbers as Python reads them.
#pragma once

#include <optional>
#include <string_view>

namespace tally {

// Python's float(text); nothing where it would raise ValueError.
std::optional<double> python_float(std::string_view text);

}  // namespace tally
