// Tables as JSON, for programs. docs/result.schema.json describes the document.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/mark.h"
#include "engine/report/report.h"

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

}  // namespace tally
