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
};

// Joins tables of one name. The rows stay in the order of the parts. The columns are those of the
// last part, then those that only other parts have. The first column, "id", is the run's. If a
// column of the workflow has that name, it is called "run id". Notes and missed references name
// their run. A note says which runs were computed by other definitions. An error if a column has
// different units.
Status join_parts(std::vector<RunPart> parts, const RenderOptions& options, RenderedResult* joined);

}  // namespace tally
