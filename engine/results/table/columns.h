// Columns that are not read from a file: expressions, and values relative to a baseline row.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/rows/records.h"
#include "engine/results/table/expressions.h"
#include "engine/results/table/result_table.h"
#include "engine/workflow/column_order.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Computes the derived columns among `columns` into `rows`, in the order of column_order().
// Statistics of expressions are computed before (add_statistics()).
void add_derived_columns(const ResultContext& context, const std::vector<Column>& columns,
                         const Records& records, std::vector<Record>& rows);

// Texts in a column that needs numbers, and what else it has there.
struct TextsFound {
  struct Cell {
    size_t row = 0;
    bool is_text = false;  // of a measurement
    bool is_number = false;
    bool is_baseline = false;  // other rows' values are divided by it
    std::string text;
  };
  const Column* column = nullptr;
  const char* called = "";  // what has the cells: rows, or their repeats
  std::vector<Cell> cells;
};

// Reports texts in the rows that a filter keeps: those that an expression gives are an error, and so
// are values of which none is a number.
void refuse_texts(const TextsFound& found, const std::vector<bool>& kept, Diagnostics& diagnostics);

// The values that columns have replaced in rows before all columns to their left were computed. These
// read them.
class FormerValues {
 public:
  FormerValues(const ColumnOrder& order, std::vector<Record>& rows) : order_(order), rows_(rows) {}

  // Before the column's values are added to the rows.
  void keep(const Column& column);
  // Around the computing of a column: the rows have the values that it reads.
  void give(const Column& column);
  void take_back(const Column& column);

 private:
  struct Kept {
    const Column* by;
    std::vector<Value> values;  // of each row
  };
  void exchange(Kept& kept);

  const ColumnOrder& order_;
  std::vector<Record>& rows_;
  std::vector<Kept> kept_;
};

// Whether a column to the left has the expression, too, and has computed the values for both: each
// shows a statistic of its own, or a form of its own. The expression may read what its name was before.
// `in_rows`: whether it has done so in rows, and not in their repeats alone.
bool stands_again(const std::vector<Column>& columns, const Column& column, bool in_rows);

struct InRepeats {
  const std::vector<size_t>& rows;  // the row of each
  bool again;                       // stands_again()
};
// Computes the column's expression in repeats. The column is relative to none.
// Faults of a column that shows something of all repeats are reported here, and those of any other
// where it is added to the rows.
void add_in_repeats(const ResultContext& context, const Column& column, const Records& records,
                    const InRepeats& of, std::vector<Record>& repeats);

// column_order() of columns that are computed into these rows.
ColumnOrder columns_in_order(const Benchmark& benchmark, const std::vector<Column>& columns,
                             const Records& records, const std::vector<Record>& rows);

// How a note of a row begins that says why its cell of the column is empty.
std::string empty_cell(const Column& column);

}  // namespace tally
