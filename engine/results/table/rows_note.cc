#include "engine/results/table/rows_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tally {

std::string RowsNote::rows_text() const {
  std::string text = rows.size() == 1 ? "row " : "rows ";
  for (size_t i = 0; i < rows.size();) {
    size_t last = i;
    while (last + 1 < rows.size() && rows[last + 1] == rows[last] + 1) ++last;
    text += fmt::format("{}{}", i == 0 ? "" : ", ", rows[i] + 1);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : " to ", rows[last] + 1);
    i = last + 1;
  }
  return text + " " + words.mark;
}

std::string RowsNote::text() const {
  std::string what = cores > 0 ? fmt::format("up to {:.1f} cores of this machine", cores) : "";
  if (!words.middle.empty()) what += (what.empty() ? "" : " and ") + words.middle;
  return words.begin + what + words.end;
}

void add_row(size_t row, double cores, RowsNote::Words words, std::vector<RowsNote>* notes) {
  auto found = std::find_if(notes->begin(), notes->end(),
                            [&](const RowsNote& note) { return note.words == words; });
  if (found == notes->end()) found = notes->insert(found, {std::move(words), {}, 0});
  found->rows.push_back(row);
  found->cores = std::max(found->cores, cores);
}

}  // namespace tally
