#include "src/ops/tuned.h"

#include <map>
#include <sstream>

#ifdef TALLY_WITH_CUDA
#include "src/ops/gemm/gemm.h"
#endif

namespace tally::train {

#ifdef TALLY_WITH_CUDA
std::string tuned_algorithms(Stream& s) {
  return s.device().is_cuda() ? cuda::gemm_plans(cuda::cuda_stream(s)).text() : "";
}

void adopt_algorithms(Stream& s, const std::string& lines) {
  if (s.device().is_cuda()) cuda::gemm_plans(cuda::cuda_stream(s)).adopt(lines);
}
#else
std::string tuned_algorithms(Stream&) {
  return "";
}

void adopt_algorithms(Stream&, const std::string&) {}
#endif

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
