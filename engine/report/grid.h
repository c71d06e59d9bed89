// A table as text: cells that are already strings, laid out in one of JUBE's styles.
#pragma once

#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// All rows have as many cells as the header. `widths` are the least widths (colw), 0 for none; they
// count for the columns as printed, after transposing.
struct Grid {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
};

// pretty:  "name:", then "| a |  b |" with cells to the right and a rule below the header (none
// when
//          transposed); a cell of several lines takes several lines.
// csv:     cells joined by `separator`; a newline is a blank. `widths` pad. Quoting::rfc4180 quotes
//          what holds the separator, a quote or a carriage return; raw, as JUBE writes it, nothing.
// aligned: csv with every column as wide as its widest line.
// Ends in a newline; lines are counted in code points.
enum class Quoting { rfc4180, raw };
std::string layout(const Grid& grid, TableStyle style, const std::string& separator, bool transpose,
                   const std::string& name, Quoting quoting = Quoting::rfc4180);

}  // namespace tally
