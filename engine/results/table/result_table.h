// The content of a table, a database or a syslog before it is rendered: rows and columns with typed
// values, and notes about them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/results/read/views.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/column_info.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A reference that is not met, or whose value is missing.
struct MissedReference {
  Mark mark;             // of the condition
  std::string text;      // "row 2 (n=4): time is 587.1; expected <= 560, missed by 4.84 %"
  int workpackage = -1;  // of the row; -1: there is no row
  std::string on_fail;   // the command that collects the cause; empty: none
  // The place as text, where runs with several inputs are shown together. Empty: that of `mark`.
  std::string place = {};
  // Its position in the table: the row from 0 (-1: in none), and the key of the values, which is
  // a column's unless no column shows them.
  int row = -1;
  std::string key = {};
};
std::string position_text(const Sources& sources, const MissedReference& missed);

// A note shown below a table.
struct Note {
  std::string row;   // "row 2", "row 2 FAILED"; empty: about the whole table
  std::string text;  // "'eff' is empty: ...", "workpackage 1 (s) failed: ..."
  // Whether the note is about the row's workpackage: why it failed, or that its machine was busy.
  // Such a note is the same in every table with a row of that workpackage.
  bool of_workpackage = false;
  // Whether the note is about the run. Commands print it once, when they read the run; tables have
  // it for documents.
  bool of_run = false;

  std::string str() const { return row.empty() ? text : row + ": " + text; }
};

struct ResultTable {
  std::vector<TableColumn> columns;  // those of the workflow that were chosen, and Tally's own
  std::vector<Record> rows;          // filtered and in order; values are under ColumnInfo::name
  std::vector<Note> notes;
  std::vector<std::string> missing_rows;  // Records::missing_rows
  std::vector<Record> missing;            // of Records::missing those that the table may show
  bool changed = false;                   // Records::changed
  int references_passed = 0;
  std::vector<MissedReference> missed;
  std::vector<MissedReference> warned;  // those with `action: warn`
  // For each reference of the table, the numbers of its rows that count.
  std::vector<std::vector<double>> reference_values;
};

struct ColumnChoice {
  std::vector<std::string> select, exclude;  // names or titles; empty: all, none
  bool with_id = false;                      // rows of several runs; "id" is the first column
};

// Makes the rows that the outputs of one benchmark show.
//
// A row that is no measurement, or whose work was reused, is marked, except in JUBE mode. If the
// table has no column `status` (state_word()), a column is added that says so. marks.h lists the
// marks. A parameter or pattern named `status` takes precedence over the built-in one. A database
// without a `status` key does not get the row.
//
// A row whose measurement was disturbed or short says so in a column `machine`, which is added if
// there is such a row. Each mark has a note.
//
// Derived columns: `expression` is Python over the row's values, by bare name or as $name.
// `relative_to` divides a column by its value in the baseline row. The baseline row has the given
// values, and otherwise what Baselines in columns.cc asks for. No division takes place if the
// expression itself uses values of the baseline row, as baseline.NAME.
//
// A column with `statistic` or `better` has a Summary in each row: Record::summaries, by
// ColumnInfo::name. It holds the sample, the number of repeats, the interval that `uncertainty` asks
// for and the outliers. The columns that `uncertainty` adds beside it, and the column of repeats at
// the end, have keys with a blank, which no value of the input has.
//
// References: `condition` is "<= 560" (also < >= > == !=), "34000 +- 5%", "34000 +- 20", "10 ..
// 20", or Python over the row, where x is the value. See condition.h.
class ResultTables {
 public:
  // The arguments must outlive the object.
  ResultTables(const ResultContext& context, const Records& records)
      : context_(context),
        benchmark_(context.benchmark),
        evaluator_(context.evaluator),
        diagnostics_(context.diagnostics),
        records_(records) {}

  ResultTable table(const Table& table, const ColumnChoice& choice) const {
    return this->table(table, choice, records_.rows);
  }
  // `rows`: the records' own. The last table may take them, which saves a copy.
  ResultTable table(const Table& table, const ColumnChoice& choice, std::vector<Record> rows) const;
  ResultTable database(const Database& database) const;
  ResultTable syslog(const Syslog& syslog) const;

 private:
  std::vector<Record> with_marks(std::vector<Record> rows,
                                 const std::set<std::string>& shown) const;
  std::vector<Record> with_status(std::vector<Record> rows,
                                  const std::set<std::string>& names) const;
  void set_units(ResultTable& out) const;
  void check_units(const Table& table, ResultTable& out) const;
  // `table`: null for other outputs.
  // Whether each row was kept.
  std::vector<bool> filter(const Text& filter, const Table* table, ResultTable& out) const;
  void filter_missing(const Text& filter, ResultTable& out) const;
  void drop_empty(ResultTable& out, bool with_id) const;
  void note_missing_job_value(const TableColumn& column, ResultTable& out) const;
  void note_missing(ResultTable& out) const;
  void add_notes(ResultTable& out) const;

  // The rows of an output before they are filtered: with marks, a status and statistics.
  std::vector<Record> rows_of(const ResultContext& context, const std::vector<Column>& columns,
                              const std::set<std::string>& names,
                              const std::set<std::string>& shown, std::vector<Record> rows) const;

  const ResultContext context_;
  const Benchmark& benchmark_;
  Evaluator& evaluator_;
  Diagnostics& diagnostics_;
  const Records& records_;
};

}  // namespace tally
