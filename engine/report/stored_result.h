// Tables that were written as JSON (`result -s json`, `report --format json`), read again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/report/json.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct StoredTable {
  // With the summaries of columns that have any, states and marks. A row's parameters are those
  // that the table shows.
  std::vector<Record> rows;
  std::set<std::string> parameters;          // which it shows, of the workflow's free ones
  std::map<std::string, std::string> units;  // by column_key()
};
struct StoredResult {
  ReportedRun run;
  std::map<std::string, StoredTable> tables;
};

// `benchmark` says which columns are parameters. An error if the file is no such document, or is of
// several runs.
Status read_stored_result(const std::string& path, const Benchmark& benchmark, StoredResult* out);

}  // namespace tally
