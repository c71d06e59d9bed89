// Analyses runs and shows their tables, for `run -r`, `continue -r`, `analyse` and `result`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/cli/input.h"
#include "engine/cli/runs.h"
#include "engine/report/json.h"
#include "engine/report/report.h"
#include "engine/results/rows/analyse.h"

namespace tally {

// Reads the workpackages of a run whose results a command shows, and prints to standard error what
// makes them incomplete: workpackages that have not ended. (What has changed since the end is found out
// while files are read, and is among the diagnostics.) Every command that shows results calls
// it, in JUBE's language, too. Returns false, after printing why, if they cannot be read.
bool read_views(const Settings& settings, const Run& run, const Benchmark& definitions,
                std::vector<WorkpackageView>* views);
// What read_views() prints, for a command that reads several runs at once.
void print_unfinished(const Run& run, const std::string& note);

// The folder of a result's files: in the run's folder, or in a folder for each run below the
// result's result_dir.
std::string result_directory(const Run& run, const Result& result);

struct ShowOptions {
  RenderOptions render;
  bool print = true;  // tables to standard output
  bool write = true;  // result/NAME.dat, databases, syslog
  // If given, gets the raw samples of one run, for keep_samples().
  std::vector<Sample>* samples = nullptr;
  // If given, gets the outputs that were shown.
  std::vector<RenderedResult>* shown = nullptr;
};

// Analyses the runs and renders their results, each with its own definitions. The tables of several
// runs are joined and get an "id" column. Returns an exit code.
int show_results(const Settings& settings, std::span<const Run> runs, const ShowOptions& options);
// Keeps the samples in the run's journal. If it is in use or belongs to another person, they are not
// kept.
void keep_samples(Run& run, const std::vector<Sample>& samples);
// Prints tables to standard output, and notes and missed references to standard error. Returns the
// exit code that follows from the references.
int print_results(const Settings& settings, const std::vector<RenderedResult>& rendered,
                  const Sources& sources);
// Prints the tables as one JSON document (style json) or a line a row (jsonl). Nothing for other
// styles.
void print_json(const std::string& style, const std::vector<ReportedRun>& runs,
                const std::vector<RenderedResult>& tables, const Sources& sources);
// Only analyses, and writes analyse.xml. Returns true on success. `rows` counts result lines.
bool analyse_run(const Settings& settings, const Run& run, size_t* rows);

}  // namespace tally
