// Analysing runs and showing their tables: shared by `run -r`, `continue -r`, `analyse`, `result`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/cli/input.h"
#include "engine/cli/runs.h"
#include "engine/report/report.h"
#include "engine/results/result_records.h"

namespace tally {

// A run opened for its results.
struct OpenRun {
  RunDirectory directory;
  std::unique_ptr<Journal> journal;
  std::unique_ptr<Input> input;  // what it was started with, or the file of -u
  const Benchmark* benchmark = nullptr;
};

// Opens a run for reading. False when it cannot be; the reason has been printed. `update`: an input
// file whose patterns, analysers and results take the place of the stored ones; empty: none.
bool open_run(const Invocation& invocation, const RunDirectory& directory,
              const std::string& update, const InputArgs& update_input, OpenRun* run);

struct ShowOptions {
  RenderOptions render;
  bool print = true;  // tables to standard output
  bool write = true;  // result/NAME.dat, databases, syslog
};

// Analyses the runs and renders the results of the last one's definitions, merged with an "id"
// column when there are several. Returns an exit code.
int show_results(const Invocation& invocation, const std::vector<OpenRun>& runs,
                 const ShowOptions& options);
// Tables to standard output, notes and missed references to standard error. Returns the exit code
// that the references ask for.
int print_results(const Invocation& invocation, const std::vector<RenderedResult>& rendered,
                  const Sources& sources);
// Analyses alone and writes analyse.xml; true when it went well. `rows` counts result lines.
bool analyse_run(const Invocation& invocation, const OpenRun& run, size_t* rows);

}  // namespace tally
