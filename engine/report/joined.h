// Tables of several runs, joined into one.
#pragma once

#include <vector>

#include "engine/base/mark.h"
#include "engine/base/status.h"
#include "engine/report/report.h"

namespace tally {

// A table of one run, and the definitions that it was made with.
struct RunPart {
  Value run;  // stands in the column that tells the runs apart
  const Benchmark* benchmark = nullptr;
  const Table* table = nullptr;
  const Sources* sources = nullptr;
  RenderedResult rendered;
  size_t nth = 0;  // its rows' place among those of the parts
};

struct JoinOptions {
  Rules rules = Rules::tally();
  bool run_of_one = true;  // the run's column is there, too, if only one run has the table
};

// Joins tables of one name. The columns are those of the
// last part, then those that only other parts have. The first column, "id", is the run's. If a
// column of the workflow has that name, it is called "run id". Notes and missed references name
// their run. A note says which runs were computed by other definitions. A column with different
// units is an error, or a note if the rules do not ask for equal ones.
Status join_parts(std::vector<RunPart> parts, const RenderOptions& options, const JoinOptions& how,
                  RenderedResult* joined);

}  // namespace tally
