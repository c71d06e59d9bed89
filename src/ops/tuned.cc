#include "src/ops/tuned.h"

#include <map>
#include <sstream>

namespace tally::train {
namespace {

std::string nothing_tuned(Stream&) {
  return "";
}
void adopt_nothing(Stream&, const std::string&) {}

const OnCpu tuned_on_cpu(tuned_algorithms, nothing_tuned);
const OnCpu adopt_on_cpu(adopt_algorithms, adopt_nothing);

}  // namespace

std::string first_choices(const std::vector<std::string>& ranks) {
  // A GEMM is either "gemm KEY ALGORITHM" or "choice float64/KEY TILE": one call, one key.
  const std::string float64 = "float64/";
  std::map<std::string, std::string> first;
  for (const std::string& text : ranks) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string kind, key;
      fields >> kind >> key;
      if (kind == "gemm") key = float64 + key;
      first.emplace(key, line);
    }
  }
  std::string out;
  for (const auto& [key, line] : first) out += line + "\n";
  return out;
}

}  // namespace tally::train
