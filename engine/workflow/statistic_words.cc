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

// The word at that position.
std::string word(const char* words, size_t position) {
  return position == 0 ? std::string() : split_strip(words, "|")[position - 1];
}

}  // namespace

Statistic statistic_of(std::string_view word) {
  return static_cast<Statistic>(position(kStatisticWords, word));
}

Uncertainty uncertainty_of(std::string_view word) {
  return static_cast<Uncertainty>(position(kUncertaintyWords, word));
}

std::string statistic_word(Statistic statistic) {
  return word(kStatisticWords, static_cast<size_t>(statistic));
}

std::string uncertainty_word(Uncertainty uncertainty) {
  return word(kUncertaintyWords, static_cast<size_t>(uncertainty));
}

const char* better_word(Better better) {
  if (better == Better::unknown) return "";
  return better == Better::higher ? "higher" : "lower";
}

const std::vector<std::string>& sample_words() {
  static const std::vector<std::string> words = split_strip(kSampleWords, "|");
  return words;
}

}  // namespace tally
