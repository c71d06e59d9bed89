// Fields of CSV files.
#pragma once

#include <string>

namespace tally::train {

// A field in quotes. Names of kernels contain commas; they contain quotes only where characters are
// arguments of a template.
std::string csv_quoted(const std::string& text);

}  // namespace tally::train
