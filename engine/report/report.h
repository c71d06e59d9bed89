// Renders records as tables (pretty, csv, aligned), databases and syslog lines.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/report/grid.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct RenderedResult {
  std::string name;  // of the table
  // The text for standard output. On a terminal, its columns are aligned for what is shown there.
  // For a database without a file of its own, only the line to print ("Database location of id 0:
  // ...").
  std::string text;
  std::string file_text;    // the content of result/NAME.dat
  bool has_file = true;     // result/NAME.dat holds file_text
  bool of_one_run = false;  // names one run's database: not for a table of several runs
  // The table that it is, and the result that it belongs to. Null: a database or a syslog.
  const Table* definition = nullptr;
  const Result* result = nullptr;
  Grid grid;  // of a table: its cells as text, with no other layout
  // The content, with the notes and missed references that are shown below the printed table.
  ResultTable table;
};

struct RenderOptions {
  std::vector<std::string> only;             // -o: names of tables; empty: all
  std::vector<std::string> select, exclude;  // columns
  // -s: overrides the table's own; empty: keeps it. json, jsonl: nothing is rendered as text, and
  // the caller makes a document of all tables. These two and markdown do not change NAME.dat.
  std::string style, separator;
  bool with_id = false;          // several runs in one table: "id" is the first column
  int run_id = 0;                // shown in a database's message
  std::string run_key;           // names the run and the result for good: see write_database()
  bool write = true;             // false: databases and syslog are not written
  std::string result_dir = ".";  // the folder of databases that name no file
};

// Lays out the cells of a table: the text that is printed, and that of its file.
void lay_out(const Table& table, const RenderOptions& options, Quoting quoting,
             RenderedResult* rendered);

// Renders every output of `result` with the rows that `tables` makes for it. Writes databases and
// sends syslog lines. Failures go to `diagnostics`.
std::vector<RenderedResult> render(const Benchmark& benchmark, const Result& result,
                                   const ResultTables& tables, const RenderOptions& options,
                                   Diagnostics& diagnostics);

}  // namespace tally
