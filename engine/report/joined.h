// Tables of several runs, joined into one.
#pragma once

#include <string>
#include <vector>

#include "engine/report/report.h"
#include "engine/report/run_results.h"

namespace tally {

struct JoinedTables {
  std::vector<RenderedResult> tables;
  std::vector<std::string> problems;  // why others could not be joined
};

// Joins the tables of several runs, each computed by its own definitions; they are moved from.
// Tables of one name are joined if they are of the same benchmark. The tables of the last run come
// first.
//
// The columns are those of the last run, then those that only other runs have. The first column,
// "id", is the run's. If a column of the workflow has that name, it is called "run id". Notes and
// missed references name their run. A note says which runs were computed by other definitions. A
// column with different units is a problem, or a note if the rules do not ask for equal ones.
//
// `run_of_one`: the run's column is there, too, if only one run has the table.
JoinedTables join_tables(std::vector<RunResults>& runs, const RenderOptions& options,
                         bool run_of_one);

}  // namespace tally
