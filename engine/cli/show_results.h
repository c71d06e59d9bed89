// Prints the results of runs, for `run -r`, `continue -r`, `analyse` and `result`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/report/json.h"
#include "engine/report/report.h"
#include "engine/report/run_results.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"

namespace tally {

// Reads the workpackages of a run whose results a command shows, and prints to standard error what
// makes them incomplete: workpackages that have not ended. (What has changed since the end is found
// out while files are read, and is among the diagnostics.) Every command that shows results calls
// it, in JUBE's language, too. Returns false, after printing why, if they cannot be read.
bool read_run(const Settings& settings, const Run& run, const Benchmark& definitions,
              RunResults* out);
// Prints what read_run() prints, for a command that reads several runs at once.
void print_unfinished(const Run& run, const std::string& note);

struct ShowOptions {
  ResultRequest request;
  // If given, gets the raw samples of one run, for keep_samples().
  std::vector<Sample>* samples = nullptr;
  // If given, gets the outputs that were shown.
  std::vector<RenderedResult>* shown = nullptr;
};

// Makes the results of the runs, each with its own definitions, and shows them. The tables of
// several runs are joined and get an "id" column. Returns an exit code.
int show_results(const Settings& settings, std::span<const Run> runs, const ShowOptions& options);
// Makes the tables of the runs, for commands that show them in forms of their own. Prints problems.
// Returns false if the output of a run cannot be read, or if tables cannot be joined.
bool tables_of_runs(const Settings& settings, std::span<const Run> runs,
                    std::vector<RenderedResult>* tables);
// Prints tables to standard output, and notes and missed references to standard error. Returns the
// exit code that follows from the references.
int print_results(const Settings& settings, const std::vector<RenderedResult>& rendered,
                  const Sources& sources);
// Prints the tables as one JSON document (style json) or a line a row (jsonl). Other styles
// print nothing here.
void print_json(const std::string& style, const std::vector<ReportedRun>& runs,
                const std::vector<RenderedResult>& tables, const Sources& sources);
// Only analyses, and writes analyse.xml. Returns true on success. `rows` counts result lines.
bool analyse_run(const Settings& settings, const Run& run, size_t* rows);

// Does each such step in RUN/result/STEP: its file sets are placed there, each table lies there as
// TABLE.csv, then its commands run, in order. A step is done again only if its tables, commands,
// environment or files differ from those of the last time. The work is made beside the folder and
// takes its place when the last command has ended with exit code 0; otherwise it stays in
// STEP.failed and the earlier folder in its place. `unfinished`: the run goes on, so that its
// tables will change: nothing is done. Prints what was made and what failed. Returns an exit code.
int do_result_steps(const Settings& settings, const Run& run,
                    const std::vector<RenderedResult>& tables, bool unfinished);

}  // namespace tally
