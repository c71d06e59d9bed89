// One note about several rows of a table.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tally {

// A note about rows that were disturbed alike. The texts are equal but for the most cores that
// others used.
struct RowsNote {
  struct Words {
    std::string mark, begin, middle, end;
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

}  // namespace tally
