// Tables from records: pretty, csv, aligned; databases; syslog lines.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/results/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct RenderedResult {
  std::string name;  // of the table
  // As printed, and the bytes of result/NAME.dat; of a database without a file of its own, only the
  // line to print ("Database location of id 0: ...").
  std::string text;
  std::string file_text;
  bool has_file = true;     // result/NAME.dat holds file_text
  bool of_one_run = false;  // says where that run's is: not for a table of several runs
  // What is shown, with the notes for people and the missed references below the printed table.
  ResultTable table;
};

struct RenderOptions {
  std::vector<std::string> only;             // -o: names of tables; empty: all
  std::vector<std::string> select, exclude;  // columns
  std::string style, separator;              // -s: override; empty: the table's own
  bool with_id = false;                      // several runs in one table: "id" is the first column
  int run_id = 0;                            // named in a database's message
  bool write = true;                         // databases and syslog are written, else left alone
};

// Renders every output of `result` with the rows that `tables` makes for it. Databases are written
// (to `result_dir` unless they name a file), syslog lines are sent. What cannot be done goes to
// `diagnostics`.
std::vector<RenderedResult> render(const Benchmark& benchmark, const Result& result,
                                   const ResultTables& tables, const RenderOptions& options,
                                   const std::string& result_dir, Diagnostics& diagnostics);

}  // namespace tally
