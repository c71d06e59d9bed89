// Small text helpers that several stages share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tally {

// Python's str.strip(): ASCII white space off both ends.
std::string_view strip(std::string_view text);
// Splits at every occurrence of `separator`; "" gives {text}. Pieces are stripped. Empty pieces count.
std::vector<std::string> split_strip(std::string_view text, std::string_view separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
bool starts_with(std::string_view text, std::string_view prefix);
// The candidate nearest to `name` by edit distance, or "" when none is near enough to be meant.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// "did you mean 'x'?" for nearest(), or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);
// Quotes a word for /bin/sh so that it arrives as it is; words that need none come back bare.
std::string shell_quote(std::string_view word);

}  // namespace tally
