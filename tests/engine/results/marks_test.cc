// One note for rows that were disturbed alike.
#include "engine/results/table/marks.h"

#include <doctest/doctest.h>

using namespace tally;

TEST_CASE("rows with equal words share a note, with the most cores") {
  const RowsNote::Words words{"BUSY", "other programs used ", "", " during the measurement"};
  std::vector<RowsNote> notes;
  for (size_t row : {0, 2, 3, 4, 6, 7}) add_row(row, row == 3 ? 1.5 : 1, words, &notes);
  add_row(8, 0, {"BUSY", "other programs used ", "GPU 0: process 7", " during"}, &notes);
  add_row(9, 2, {"BUSY", "other programs used ", "GPU 0: process 7", " during"}, &notes);
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].rows_text() == "rows 1, 3 to 5, 7, 8 BUSY");
  CHECK(notes[0].text() ==
        "other programs used up to 1.5 cores of this machine during the measurement");
  CHECK(notes[1].rows_text() == "rows 9, 10 BUSY");
  CHECK(notes[1].text() ==
        "other programs used up to 2.0 cores of this machine and GPU 0: process 7 during");
}

TEST_CASE("one row") {
  std::vector<RowsNote> notes;
  add_row(3, 0, {"THROTTLED", "slower: ", "power", ""}, &notes);
  CHECK(notes[0].rows_text() == "row 4 THROTTLED");
  CHECK(notes[0].text() == "slower: power");
}
