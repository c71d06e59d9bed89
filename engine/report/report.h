// Tables from records: pretty, csv, aligned; databases; syslog lines.
#pragma once

#include <string>
#include <vector>

#include "engine/analyse/records.h"
#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct RenderedResult {
  std::string name;  // of the table
  std::string text;  // as printed and as written to result/NAME.dat
};

struct RenderOptions {
  std::vector<std::string> only;              // -o: names of tables; empty: all
  std::vector<std::string> select, exclude;   // columns
  bool reverse = false;                       // -r
  std::string style, separator;               // -s: override; empty: the table's own
};

// Renders every output of `result` over the records of its analysers (already merged in order).
// Databases are written to `result_dir`.
std::vector<RenderedResult> render(const Benchmark& benchmark, const Result& result,
                                   const Records& records, const RenderOptions& options,
                                   const std::string& result_dir, Evaluator& evaluator,
                                   Diagnostics& diagnostics);

}  // namespace tally
