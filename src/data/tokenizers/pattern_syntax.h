// Regular expressions as a tokenizer.json has them. Hugging Face's tokenizers reads them with
// Oniguruma, and here PCRE2 does.
#pragma once

#include <string>
#include <string_view>

namespace tally::train {

// The contents of a bracketed class of white space: Unicode's White_Space property, as in Hugging
// Face's tokenizers. PCRE2's own \s differs: it takes U+180E, which is a format character since
// Unicode 6.3.
inline constexpr std::string_view white_space =
    "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"
    "\\x{202f}\\x{205f}\\x{3000}";

// `pattern` as PCRE2 reads it (with PCRE2_UTF and PCRE2_UCP), where both engines are known to match
// the same: alternatives, groups (?:...) and (...), ASCII letters without case in (?i:...),
// classes, \s \S \d \D, general categories as \p{Lu}, greedy, lazy and possessive repeats, counts
// {m,n}, lookahead. Throws std::runtime_error with what else it has, as 'the "\b" at character 3'.
std::string pcre2_pattern(std::string_view pattern);
// `text` as a pattern that matches itself alone.
std::string pcre2_literal(std::string_view text);

}  // namespace tally::train
