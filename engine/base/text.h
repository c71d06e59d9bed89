// Small text helpers that several stages share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// Python's str.strip(): ASCII white space off both ends.
std::string_view strip(std::string_view text);
// Splits at every occurrence of `separator`; "" gives {text}. Pieces are stripped. Empty pieces
// count.
std::vector<std::string> split_strip(std::string_view text, std::string_view separator);
// Every run of white space as one blank, none at the ends.
std::string one_line(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
bool starts_with(std::string_view text, std::string_view prefix);
// The candidate nearest to `name` by edit distance, or "" when none is near enough to be meant.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// "did you mean 'x'?" for nearest(), or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);
// The number of single-character insertions, deletions, substitutions and swaps of neighbours
// between two texts (optimal string alignment), in bytes.
size_t edit_distance(std::string_view a, std::string_view b);
// ASCII lower case.
std::string to_lower(std::string_view text);
// The number of bytes of the UTF-8 sequence that starts `text`, or 0 when it is not valid UTF-8
// (too long a form, a surrogate, beyond U+10FFFF, cut short) or empty. *code_point may be null.
size_t utf8_length(std::string_view text, uint32_t* code_point = nullptr);
// Quotes a word for /bin/sh so that it arrives as it is; words that need none come back bare.
std::string shell_quote(std::string_view word);

// A double-quoted shell word in which $VARIABLES still work: a job's environment is often built
// from what the job finds.
std::string double_quoted(std::string_view text);

}  // namespace tally
