#include "engine/results/records.h"

#include <algorithm>

namespace tally {

void append(Records& records, Records more) {
  if (records.rows.empty()) {
    records.rows = std::move(more.rows);
  } else {
    for (Record& row : more.rows) records.rows.push_back(std::move(row));
  }
  for (std::string& note : more.notes) {
    const bool known =
        std::find(records.notes.begin(), records.notes.end(), note) != records.notes.end();
    if (!known) records.notes.push_back(std::move(note));
  }
  records.unmatched.insert(records.unmatched.end(), more.unmatched.begin(), more.unmatched.end());
  records.units.merge(more.units);
  records.types.merge(more.types);
}

}  // namespace tally
