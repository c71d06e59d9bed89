// Small text helpers that several stages use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// Python's str.strip(): removes ASCII white space from both ends.
std::string_view strip(std::string_view text);
// Splits at every occurrence of `separator`. An empty separator gives {text}. Pieces are stripped,
// and empty pieces are kept.
std::vector<std::string> split_strip(std::string_view text, std::string_view separator);
// Replaces every run of white space by one blank and removes it at both ends.
std::string one_line(std::string_view text);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
bool starts_with(std::string_view text, std::string_view prefix);
// Whether a $name may stand in it.
inline bool has_dollar(std::string_view text) {
  return text.find('$') != std::string_view::npos;
}
// The whole number, with or without a sign, that `text` consists of.
std::optional<long long> whole_number(const std::string& text);
// Replaces every occurrence of `from`, which does nothing if it is empty.
void replace_all(std::string& text, std::string_view from, std::string_view to);
// The candidate nearest to `name` by edit distance, or "" when none is close enough.
std::string nearest(std::string_view name, const std::vector<std::string>& candidates);
// "did you mean 'x'?" for nearest(), or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);
// The number of single-character insertions, deletions, substitutions and swaps of neighbours that
// turn one text into the other (optimal string alignment). It counts bytes.
size_t edit_distance(std::string_view a, std::string_view b);
// An id as folders have it: 7 -> "000007".
std::string padded_id(int id);
// ASCII lower case.
std::string to_lower(std::string_view text);
// The number of bytes of the UTF-8 sequence at the start of `text`. It is 0 when the text is empty
// or not valid UTF-8 (overlong, a surrogate, beyond U+10FFFF, or truncated). `code_point` may be
// null.
size_t utf8_length(std::string_view text, uint32_t* code_point = nullptr);
// Quotes a word for /bin/sh so that it arrives unchanged. A word that needs no quotes stays bare.
std::string shell_quote(std::string_view word);

// Puts a word in double quotes for the shell, so that $VARIABLES in it are still expanded. A job's
// environment is often built from variables that are set inside the job.
std::string double_quoted(std::string_view text);

}  // namespace tally
