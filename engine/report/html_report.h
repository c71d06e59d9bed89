// A report as one HTML file: nothing is fetched, and it can be read without JavaScript.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/report/grid.h"

namespace tally {

// A workpackage that failed or was lost.
struct ReportFailure {
  std::string name;     // "workpackage 3 (train)"
  std::string values;   // its parameters: "gpus=4 precision=fp16"
  std::string message;  // why, with the last lines of its output
  std::string link;     // its folder, relative to the report
};

struct ReportRun {
  std::string title;                                       // "scaling, run 3"
  std::string link;                                        // its folder, relative to the report
  std::vector<std::pair<std::string, std::string>> facts;  // "Started": "2026-11-21 01:18:53"
  std::vector<ReportFailure> failures;
};

struct ReportTable {
  std::string name;
  Grid grid;
  std::vector<bool> numeric;  // by column
  std::vector<bool> failed;   // by row
  std::vector<std::string> notes;
  int references_passed = 0;
  std::vector<std::string> missed;  // references
  std::string link;                 // the table's file; empty: there is none
};

struct ReportChart {
  std::string name;
  std::string svg;      // for an HTML page; empty: it cannot be drawn
  std::string problem;  // why not
};

struct Report {
  std::string title;
  std::string made;  // "2026-11-21 01:18:53 by tally 0.1.0"
  std::vector<ReportRun> runs;
  std::vector<ReportTable> tables;
  std::vector<ReportChart> charts;
};

// The page has at most about `most_bytes`. Rows, failures and charts that do not fit are left out,
// and the page says how many.
std::string html_report(const Report& report, size_t most_bytes = 195000);

}  // namespace tally
