#include "src/measure/csv.h"

namespace tally::train {

std::string csv_quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace tally::train
