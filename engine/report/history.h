// The results of runs over time: one file for each run in OUTPATH/history.d/.
//
// A file is written beside its name and renamed, so that several hosts can write to the folder at
// once, also on a network file system. It holds the raw samples, so that it outlives the run's
// folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/report/json.h"
#include "engine/report/report.h"
#include "engine/run/run.h"
#include "engine/statistics/descriptive.h"
#include "engine/statistics/intervals.h"

namespace tally {

// One metric of one row of a run.
struct HistoryEntry {
  int run = 0;
  std::string start;  // of the run: 2026-11-21T01:18:53
  std::string benchmark, table, metric, unit;
  std::string parameters;  // "nodes=4 precision=bf16", those that tell rows apart
  std::string better;      // higher, lower, or empty
  statistics::Sample sample;
  int repeats = 0;      // failed ones included
  bool failed = false;  // or not ended, ended as its step expects, or reused: no measurement
  // FAILED, CHANGED, PENDING, RUNNING, WAITING, EXPECTED or REUSED; empty: it is a measurement
  std::string mark;
  bool busy = false, throttled = false, too_short = false;
  std::vector<std::pair<std::string, std::string>> machine;
  std::string unfinished;  // unfinished_note() of the run when the file was written
};

// A run in the history of one point of one metric.
struct HistoryPoint {
  HistoryEntry entry;
  std::optional<double> median;                  // none: it has no value
  std::optional<statistics::Interval> interval;  // of the median, 95 %
  struct Change {
    std::string word;  // improves, regresses; rises, falls where the better direction is not known
    double before = 0, after = 0;  // medians of the runs from one change to the next
  };
  std::optional<Change> change;  // of level, at this run
};
// The runs of one point, in the order of their ids. Never empty.
using HistorySeries = std::vector<HistoryPoint>;

// The series of the entries of one point, with the places where its level changed.
HistorySeries history_series(std::vector<HistoryEntry> entries);
// The document of `tally history -s json`: docs/history.schema.json.
std::string history_json(const std::string& metric, const std::vector<HistorySeries>& series,
                         const std::string& version);

// Writes a run's file beside its folder: the rows of the columns with `statistic` or `better`.
// Writes nothing if there are none. `unfinished`: unfinished_note() of the run.
Status write_history(const Run& run, const ReportedRun& reported,
                     const std::vector<RenderedResult>& tables, const std::string& unfinished,
                     const std::string& version);
// Reads all files of the folder, by run. A file that is not a history is an error that names it.
Status read_history(const std::string& outpath, std::vector<HistoryEntry>* entries);

}  // namespace tally
