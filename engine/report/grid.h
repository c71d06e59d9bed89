// Renders a table as text in one of JUBE's styles. The cells are already strings.
#pragma once

#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// All rows have as many cells as the header. `widths` are the minimum widths (colw), 0 for none.
// They apply to the columns as printed, after transposing.
struct Grid {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<size_t> widths;
};

//   pretty   "name:", then "| a |  b |" with cells aligned right and a rule below the header (no
//            rule when transposed). A cell with several lines takes several lines.
//   csv      Cells joined by `separator`. A newline becomes a blank. `widths` pad the cells.
//            Quoting::rfc4180 quotes cells that contain the separator, a quote or a carriage
//            return. Quoting::raw quotes nothing, as JUBE does.
//   aligned  csv in which every column is as wide as its widest line.
// The text ends in a newline. Widths are counted in code points.
enum class Quoting { rfc4180, raw };
struct GridLayout {
  TableStyle style = TableStyle::csv;
  std::string separator = ",";
  bool transpose = false;
  Quoting quoting = Quoting::rfc4180;
};
std::string layout(const Grid& grid, const std::string& name, const GridLayout& how);

// The table for standard output. On a terminal, cells have their control characters shown before
// the columns are aligned.
Grid for_stdout(Grid grid);

// A table of GitHub's Markdown below its name in bold. Characters that Markdown or HTML would
// interpret are escaped. A newline becomes <br>.
std::string markdown(const Grid& grid, bool transpose, const std::string& name);

}  // namespace tally
