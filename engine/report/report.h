// The outputs of a run as texts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/report/grid.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Results that are not text files: SQLite databases and syslog messages.

// Writes the rows of `table` into table `database.name` of the SQLite file `path`, which is created if
// missing, in one transaction.
//
// `run_key` names the run (and result) of the rows, in Tally's own files. The rows that it wrote
// before are replaced: those with equal primary keys, or without such keys all of its rows, which
// have the key in the column `tally_run`. The rest of the table is left as it is.
//
// Null: as JUBE does. It uses REPLACE INTO, so a row replaces an older one with the same primary
// key. Columns are named as the keys and have the types (int, float, text, NoneType) of the first
// row. In an existing table, new keys are added and columns that are no longer listed are dropped.
Status write_database(const Database& database, const ResultTable& table, const std::string& path,
                      const std::string* run_key = nullptr);

// Returns one line for each row: "a=1 t=1.0 d=None".
std::vector<std::string> syslog_lines(const Syslog& syslog, const std::vector<Record>& rows,
                                      bool exact);

// Sends the lines to the socket `address` (such as /dev/log), or by UDP to host:port (default 514).
// They are user-level informational messages in `syslog.format` ("jube[%(process)s]: %(message)s").
Status send_syslog(const Syslog& syslog, const std::vector<std::string>& lines);

// Renders records as tables (pretty, csv, aligned), databases and syslog lines.
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

// Returns "1, 2, 5 to 9 and 3 more". The numbers rise.
std::string numbers_in_words(const std::vector<int>& numbers);

// The notes' texts. Notes about rows and workpackages that are equal but for their numbers become
// one: "rows 1, 3 to 5 FAILED: workpackages 0 and 2 to 4 (s) failed: exit code 3".
std::vector<std::string> grouped_notes(std::span<const Note> notes);

}  // namespace tally
