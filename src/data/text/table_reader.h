// Rows of texts with named columns: CSV, TSV and JSON lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tally::train {

// csv: RFC 4180. Fields are separated by commas and may be quoted; a quoted field may contain
// commas,
//   line ends and, doubled, quotes. The first row has the names.
// tsv: fields are separated by tabs, and nothing is quoted. The first row has the names.
// jsonl: an object a line; numbers and true and false become text.
enum class TableFormat { automatic, csv, tsv, jsonl };

struct TableCell {
  std::string text;
  int64_t line = 0, column = 0;  // its beginning; counted from 1, columns in bytes
};

// Reads a file, gzip'd or not ("-": standard input). `automatic`: by the name's ending, .csv, .tsv,
// .jsonl, .ndjson or .json, with or without .gz. `columns`: the wanted columns' names; each row of
// the result has their cells in this order. Blank lines are left out. Throws BadInput
// (text_input.h) with one sentence that begins with FILE:LINE:COLUMN: a quote that is not closed or
// stands where none may, a row with another number of fields than the first, an unknown column, a
// value that is no text, bytes that are not UTF-8.
std::vector<std::vector<TableCell>> read_table(const std::string& path, TableFormat format,
                                               const std::vector<std::string>& columns);

}  // namespace tally::train
