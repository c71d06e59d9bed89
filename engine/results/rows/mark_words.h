// The words of marks. results/table/marks.h says which row has which.
#pragma once

#include <string>

namespace tally {

inline constexpr const char* kBusy = "BUSY";
inline constexpr const char* kThrottled = "THROTTLED";
inline constexpr const char* kShort = "SHORT";
inline constexpr const char* kReused = "REUSED";

// Adds the mark to a list of marks, if it is one of them.
inline void add_mark(bool is_marked, const char* mark, std::string* marks) {
  if (!is_marked) return;
  if (!marks->empty()) *marks += ' ';
  *marks += mark;
}

}  // namespace tally
