// Tables as JSON, for programs. docs/result.schema.json describes the document.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/report/report.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A run that rows come from.
struct ReportedRun {
  int id = 0;
  std::string directory;  // absolute
  std::string benchmark;
  std::vector<std::pair<std::string, std::string>> machine;  // facts by name; empty: not recorded
};

// One document with the tables and their runs. Values are not formatted: numbers are numbers, in
// full precision. NaN is null. An infinite number, and an integer that needs more than 64 bits, is
// a string. `version`: this program's. Only outputs that are tables are in it.
std::string json_document(const std::vector<ReportedRun>& runs,
                          const std::vector<RenderedResult>& tables, const Sources& sources,
                          const std::string& version);
// One line for each row of each table. A line is the document's row with the table's name.
std::string json_lines(const std::vector<RenderedResult>& tables);

// Tables that were written as JSON (`result -s json`, `report --format json`), read again.
struct StoredTable {
  // With the summaries of columns that have any, states and marks. A row's parameters are those
  // that the table shows.
  std::vector<Record> rows;
  std::set<std::string> parameters;  // which it shows, of the workflow's free ones
  std::vector<ColumnInfo> columns;
};
struct StoredResult {
  ReportedRun run;
  std::map<std::string, StoredTable> tables;
};

// `benchmark` says which columns are parameters. An error if the file is no such document, or is of
// several runs.
Status read_stored_result(const std::string& path, const Benchmark& benchmark, StoredResult* out);

// {"version": 1, "errors": 1, "warnings": 0, "problems": [{"file": ..., "line": ..., ...}]}
std::string problems_as_json(const std::vector<Problem>& problems);
// SARIF 2.1.0, which code scanners read. `version`: this program's.
std::string problems_as_sarif(const std::vector<Problem>& problems, const std::string& version);

}  // namespace tally
