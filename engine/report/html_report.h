// A report as one HTML file: nothing is fetched, and it can be read without JavaScript.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/report/grid.h"

namespace tally {

// Workpackages that failed or were lost alike: they are shown once.
struct ReportFailure {
  std::string name;     // "workpackage 3 (train) failed", "6 workpackages (train) failed"
  std::string values;   // parameters that they share: "gpus=4 precision=fp16"
  std::string message;  // why, with the last lines of the first one's output
  std::string link;     // the first one's folder, relative to the report
  size_t count = 1;
  std::string cause = {};  // why, in one line
  // Each one's name with the parameters of its own, and its folder, if there are several.
  std::vector<std::pair<std::string, std::string>> members = {};
};

struct ReportRun {
  std::string title;                                       // "scaling, run 3"
  std::string link;                                        // its folder, relative to the report
  std::vector<std::pair<std::string, std::string>> facts;  // "Started": "2026-11-21 01:18:53"
  std::vector<ReportFailure> failures;
  size_t workpackages = 0, unfinished = 0;
};

// A cell whose value misses a reference.
struct ReportMiss {
  size_t row = 0;
  size_t column = 0;  // as many as there are columns: no column shows the value
  std::string text;   // "tps is 72028.0; expected <= 70000, missed by 2.9 %"
  bool warned = false;
};

struct ReportTable {
  std::string name;
  Grid grid;
  std::vector<bool> numeric;  // by column
  std::vector<bool> failed;   // by row
  std::vector<std::string> notes;
  int references_passed = 0;
  std::vector<std::string> missed;       // references
  std::string link;                      // the table's file; empty: there is none
  std::vector<std::string> warned = {};  // references with `action: warn`
  std::vector<ReportMiss> misses = {};   // of missed and warned
  std::vector<bool> marks = {};          // by column: it holds marks, as BUSY
  // Rows whose numbers do not count as they stand, by mark: "CHANGED", "REUSED", "BUSY", "SHORT".
  std::map<std::string, size_t> doubtful = {};
  size_t empty_cells = 0;  // of rows that were measured
  Grid beside = {};        // several runs side by side; no rows: not shown
  std::vector<bool> beside_numeric = {};
};

struct ReportChart {
  std::string name;
  std::string svg;                      // for an HTML page; empty: it cannot be drawn
  std::string problem;                  // why not
  std::string narrow = {};              // the same for a narrow screen
  size_t table = 0;                     // that it shows
  std::vector<std::string> notes = {};  // about rows that it does not show
};

struct Report {
  std::string title;
  std::string made;  // "2026-11-21 01:18:53 by tally 0.1.0"
  std::vector<ReportRun> runs;
  std::vector<ReportTable> tables;
  std::vector<ReportChart> charts;
};

enum class ReportLevel { fine, warned, bad };

// The outcome of the report's runs in one sentence: "All fine: 12 workpackages done, 24 references
// held.", or what missed and what failed.
struct ReportVerdict {
  ReportLevel verdict = ReportLevel::fine;
  std::string sentence;
  const char* sign() const;  // "✓", "!", "✗"
};
ReportVerdict verdict_of(const Report& report);

// The size of the page is limited. Rows, failures and charts that do not fit are left out, and the
// page says how many.
std::string html_report(const Report& report);

// The style sheet and the script of the report.

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace tally
