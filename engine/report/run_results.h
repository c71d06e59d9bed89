// The results of a run: from its workpackages to tables, files, charts and samples. Prints nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/expand/evaluator.h"
#include "engine/report/report.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"
#include "engine/workpackage/measured.h"

namespace tally {

// One result of the definitions, with its outputs in their order.
struct MadeResult {
  const Result* result = nullptr;
  std::vector<RenderedResult> outputs;
  // Errors: files that cannot be written. Notes: charts that were drawn.
  std::vector<Problem> said;
};

struct RunResults {
  const Run* run = nullptr;                // null: logs of jobs without a run
  const Benchmark* definitions = nullptr;  // the run's own, or those of a newer file
  std::vector<WorkpackageView> views;
  std::string unfinished;  // unfinished_note()
  std::vector<MadeResult> results;
  std::vector<Sample> samples;  // if they were asked for: what each workpackage printed
  Diagnostics diagnostics;

  size_t output_count() const;
  bool writes_failed() const;  // an error was said
  // Moves the outputs of all results out, in their order.
  std::vector<RenderedResult> take_outputs();
};

struct ResultRequest {
  RenderOptions render;
  bool write = true;     // result/NAME.dat, databases, charts, syslog
  bool samples = false;  // RunResults::samples
  bool warn = true;      // of patterns that matched nothing
};

// Reads the workpackages of a run for results by `definitions`.
Status read_workpackages(const Settings& settings, const Run& run, const Benchmark& definitions,
                         RunResults* out);
// Makes the results of the workpackages that were read. Writes their files if the request asks for
// it and they are a run's.
void results_of(const Settings& settings, const ResultRequest& request, Evaluator& evaluator,
                RunResults* out);
// Only analyses, and writes analyse.xml. Returns the number of result lines.
size_t analyse_all(const Settings& settings, Evaluator& evaluator, RunResults* out);

// The tables that have a column with `better`, by name, with their rows: for commands that compare
// them. Each table is of one entry of metric_tables(). The views are not needed any longer.
std::vector<const Table*> metric_tables(const Result& result);
std::vector<ResultTable> metric_values(const Settings& settings, RunResults* out);

// For problems of results. With --strict, which JUBE knows in another meaning, warnings are errors.
Diagnostics result_diagnostics(const Settings& settings);
// Makes the evaluator for derived values of results.
std::unique_ptr<Evaluator> make_result_evaluator(const Settings& settings);

}  // namespace tally
