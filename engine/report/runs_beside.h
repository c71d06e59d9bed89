// A table of several runs with the runs side by side: a row for each point, a column for each run.
#pragma once

#include <string>
#include <vector>

#include "engine/report/grid.h"
#include "engine/report/report.h"

namespace tally {

struct RunsBeside {
  Grid grid;  // no rows: the table's rows are not points with numbers
  std::vector<bool> numeric;
};

// `joined`: a table of join_tables(), whose first column tells the runs apart. The columns that are
// `parameters` of the runs name the point, every other column of numbers has a column for each
// run. With two runs there is how far the second is from the first. Without rows where two rows of
// one run are the same point.
RunsBeside runs_beside(const RenderedResult& joined, const std::vector<std::string>& parameters);

}  // namespace tally
