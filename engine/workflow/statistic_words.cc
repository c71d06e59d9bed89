#include "engine/workflow/statistic_words.h"

#include <algorithm>

#include "engine/base/text.h"

namespace tally {
namespace {

// The position of the word, from 1; 0: it is none of them.
size_t position(const char* words, std::string_view word) {
  const std::vector<std::string> all = split_strip(words, "|");
  const auto found = std::find(all.begin(), all.end(), word);
  return found == all.end() ? 0 : static_cast<size_t>(found - all.begin()) + 1;
}

}  // namespace

Statistic statistic_of(std::string_view word) {
  return static_cast<Statistic>(position(kStatisticWords, word));
}

Uncertainty uncertainty_of(std::string_view word) {
  return static_cast<Uncertainty>(position(kUncertaintyWords, word));
}

std::string statistic_word(Statistic statistic) {
  if (statistic == Statistic::none) return {};
  static const std::vector<std::string> words = split_strip(kStatisticWords, "|");
  return words[static_cast<size_t>(statistic) - 1];
}

const std::vector<std::string>& sample_words() {
  static const std::vector<std::string> words = split_strip(kSampleWords, "|");
  return words;
}

}  // namespace tally
