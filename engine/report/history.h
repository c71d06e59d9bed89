// The results of runs over time: one file for each run in OUTPATH/history.d/.
//
// A file is written beside its name and renamed, so that several hosts can write to the folder at
// once, also on a network file system. It holds the raw samples, so that it outlives the run's folder.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/report/json.h"
#include "engine/report/report.h"
#include "engine/statistics/descriptive.h"

namespace tally {

// One metric of one row of a run.
struct HistoryEntry {
  int run = 0;
  std::string start;  // of the run: 2026-11-21T01:18:53
  std::string benchmark, table, metric, unit;
  std::string parameters;  // "nodes=4 precision=bf16", those that the table shows
  std::string better;      // higher, lower, or empty
  statistics::Sample sample;
  int repeats = 0;  // failed ones included
  bool failed = false, busy = false, throttled = false;
  std::vector<std::pair<std::string, std::string>> machine;
};

// Returns the text of a run's file: the rows of the columns with `statistic` or `better`. Empty if
// there are none. `start`: of the run.
std::string history_file(const Benchmark& benchmark, const ReportedRun& run,
                         const std::string& start, const std::vector<RenderedResult>& tables,
                         const std::string& version);
// "OUTPATH/history.d/000003.json"
std::string history_path(const std::string& outpath, int run);
// Reads all files of the folder, by run. A file that is not a history is an error that names it.
Status read_history(const std::string& outpath, std::vector<HistoryEntry>* entries);

}  // namespace tally
