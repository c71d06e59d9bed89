// The marks of rows: how their work ended, on what machine, for how long it was measured, and whose
// work a value is.
//
//   mark                      decided by
//   FAILED, LOST, EXPECTED,   Record::state, the state of the row's workpackage. With repeats, the
//   PENDING, RUNNING,         state that is nearest to done (rows/groups.cc)
//   WAITING
//   EXPECTED, CHANGED         also of an earlier step, where a value of it is shown:
//                             Record::take_marks_of_earlier()
//   CHANGED                   mark_changed() in read/changed_files.cc: output that changed after
//                             the end
//   REUSED                    Record::reused (rows/row_maker.cc)
//   BUSY, THROTTLED           Record::add_disturbance(), from what execute/ has kept in the journal; in
//                             a row with a ratio also Record::disturbed_baselines
//   SHORT                     Record::short_values: measured for less than kSteadySeconds
//
// state_mark() gives the states their words, records.h the others. mark_states() and
// mark_disturbed() add the columns `status` and `machine` that show them, with a note for each.
// report/history.cc and report/comparison_report.cc show them in their own documents.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/results/rows/records.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/workflow.h"

namespace tally {

enum class Origin {
  none,      // no file: a parameter, for example
  reused,    // reused work alone: an earlier run measured it, or another workpackage of this run
  measured,  // work of the row's own, at least in part
};

// The origin of the column's value in this row. An expression has the origin of the values in it.
Origin origin_of(const Benchmark& benchmark, const Record& row, const TableColumn& column);
// Whether it is Origin::reused. Takes no time for a row without reused work.
inline bool is_reused(const Benchmark& benchmark, const Record& row, const TableColumn& column) {
  return !row.reused_values->empty() && origin_of(benchmark, row, column) == Origin::reused;
}

// The values in the column that were measured for too short a time (Record::short_values), and for
// how many seconds; of a ratio, those of the baseline row, too. A row that is no measurement has
// none.
std::map<std::string, double> short_values_of(const Record& row, const TableColumn& column);
// The same of the row's own values of these names.
std::map<std::string, double> short_values_of(const Record& row,
                                              const std::set<std::string>& names);
std::map<std::string, double> short_values_of(const Record& row,
                                              const std::vector<TableColumn>& columns);

// "BUSY THROTTLED SHORT", as far as the row is: BUSY and THROTTLED also of the baseline rows to which
// one of the columns is relative, and SHORT if one shows such a value. Empty: nothing is marked.
std::string marks_of(const Record& row, const std::vector<TableColumn>& columns);
std::string marks_of(const Record& row, const TableColumn& column);

// Whether the column shows or is computed from a value that is reused. For tables that may come
// from several benchmarks.
bool names_reused(const Record& row, const TableColumn& column);

// A note about rows of which the same is to be said: that they were disturbed alike, that they are
// of one workpackage that failed. The texts are equal but for the most cores that others used.
struct RowsNote {
  struct Words {
    std::string mark, begin, middle, end;  // mark: of the rows; may be empty
    bool operator==(const Words&) const = default;
  };
  Words words;
  std::vector<size_t> rows;  // from 0, rising
  double cores = 0;

  // "rows 1, 3 to 5 BUSY"
  std::string rows_text() const;
  // "other programs used up to 1.0 cores of this machine and GPU 0: process 4711 (python3) ..."
  std::string text() const;
};

// Adds a row to the note with these words.
void add_row(size_t row, double cores, RowsNote::Words words, std::vector<RowsNote>* notes);

// Whether `status` is how each row's workpackage ended, and not a value of the input.
bool status_is_ours(const Benchmark& benchmark);
// Whether one of the columns shows how each row's workpackage ended.
bool shows_status(const Benchmark& benchmark, const std::vector<TableColumn>& columns);
// How the row's workpackage ended: "done", "reused", "failed".
const char* state_word(const Record& row);
// "FAILED" or "LOST" for a row that failed; "PENDING", "RUNNING" or "WAITING" for an unfinished
// one; "EXPECTED" for an outcome that its step expects.
std::string state_mark(const Record& row);

// Add the columns that mark rows, where there is such a row. In JUBE's files there is none.
void mark_states(const Benchmark& benchmark, ResultTable& out);
void mark_disturbed(const Benchmark& benchmark, ResultTable& out);
// Leave rows out of a database, and note how many.
void leave_out_unfinished(const Benchmark& benchmark, ResultTable& out);
void leave_out_failed(const Benchmark& benchmark, ResultTable& out);
void leave_out_reused(const Benchmark& benchmark, ResultTable& out);
// Notes about rows in a database of which only a table says something.
void note_marks(const Benchmark& benchmark, ResultTable& out);

}  // namespace tally
