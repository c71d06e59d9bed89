#include "src/data/tokens/split.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace tally::train {
namespace {

std::vector<double> weights_of(const std::string& split) {
  const auto bad = [&](const std::string& why) {
    return std::runtime_error(fmt::format(
        "--split '{}' {}: give up to three weights, as 969,30,1 for training, validation and test",
        split, why));
  };
  std::vector<double> weights;
  for (size_t begin = 0; begin <= split.size();) {
    size_t end = split.find_first_of(",/", begin);
    if (end == std::string::npos) end = split.size();
    const std::string word = split.substr(begin, end - begin);
    char* rest = nullptr;
    const double weight = std::strtod(word.c_str(), &rest);
    if (word.empty() || rest == word.c_str() || *rest != '\0' || !std::isfinite(weight) ||
        weight < 0) {
      throw bad(fmt::format("has '{}' where a number should be", word));
    }
    weights.push_back(weight);
    begin = end + 1;
  }
  if (weights.size() > 3) throw bad(fmt::format("has {} weights", weights.size()));
  weights.resize(3, 0.0);
  return weights;
}

}  // namespace

std::array<Range, 3> split_documents(const std::string& split, int64_t documents) {
  const std::vector<double> weights = weights_of(split);
  const double total = weights[0] + weights[1] + weights[2];
  if (!(total > 0))
    throw std::runtime_error(fmt::format("--split '{}' leaves no documents for any split", split));
  std::array<int64_t, 4> bounds{};
  for (size_t i = 0; i < 3; ++i) {
    // nearbyint rounds halves to even, as Python's round does.
    const double share = std::nearbyint(weights[i] / total * static_cast<double>(documents));
    bounds[i + 1] = bounds[i] + static_cast<int64_t>(share);
  }
  const int64_t excess = bounds[3] - documents;
  for (size_t i = 1; i < 4; ++i) bounds[i] -= excess;
  std::array<Range, 3> ranges{};
  for (size_t i = 0; i < 3; ++i) {
    ranges[i] = {std::max<int64_t>(bounds[i], 0), std::max<int64_t>(bounds[i + 1], 0)};
  }
  return ranges;
}

}  // namespace tally::train
