// Runs patterns of Python's `re` with PCRE2. Only this code knows how the two dialects differ.
// python_regex.cc translates a pattern, python_regex_match.cc matches.
//
// Patterns are always MULTILINE and match text (str), so \d, \w, \s and \b are Unicode.
// Differences:
//   {,n}            zero to n in Python, literal in PCRE2 10.42
//   \s              Python also counts 0x1C to 0x1F as space
//   \Z, \v, \1, \12 end of text; vertical tab; group references and octal numbers
//   \xhh \uXXXX \UXXXXXXXX   exactly that many digits
//   [[:digit:]]     a class of these characters in Python, a POSIX class in PCRE2
//   (?i) (?s) ...   at any place means the whole pattern, as Python 3.10 and before read it
//   (?a) (?L) (?u)  ASCII classes, or nothing
//   \h \R \K \p{..} \Q (*VERB) ...   errors in Python, and rejected here
// Known remaining differences: [\S] includes 0x1C to 0x1F, and a lookbehind may hold alternatives
// of different lengths, which Python rejects.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace tally {

struct TranslatedRegex {
  std::string pcre;            // pattern for PCRE2
  bool ignore_case = false;    // (?i)
  bool dot_all = false;        // (?s)
  bool verbose = false;        // (?x)
  bool ascii_classes = false;  // (?a)
  bool non_ascii = false;      // uses characters beyond ASCII
  std::string error;           // Python's error message; empty if the pattern is valid
  size_t error_at = 0;         // offset in the Python pattern
};
TranslatedRegex translate_python_regex(std::string_view pattern);

// The edges of the groups of a pattern of Python's `re`: what it says about the text on both sides.
// A side is open if the pattern names nothing that must stand there: it ends there, or has `.`, \S,
// \w or something optional. `energy: (\d+)` is open to the right, `(\d+)ms` and `v(\d+),` are not.
struct GroupEdges {
  bool left_open = true, right_open = true;
  bool literal = false;  // the group is a plain text, or several to choose from
};

// The whole pattern first, then its groups in order. The pattern must be valid.
std::vector<GroupEdges> group_edges(std::string_view pattern);

// A compiled pattern. Not thread-safe: it owns its match data.
class Regex {
 public:
  // The error of a pattern that is not valid is Python's message ("missing ), unterminated
  // subpattern at position 3").
  static Status compile(std::string_view pattern, bool dot_all, std::unique_ptr<Regex>* out);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Passes every string that Python's findall() would return to `sink`, in order, with the groups
  // of a match one after the other and the number of the group (0: the pattern has none). Empty
  // matches are left out; an empty group of another match is an empty text at the match's begin.
  // JUBE takes neither for a value. `ascii` promises that `text` has no byte above 127. Bytes
  // that are not UTF-8 match nothing (see text_of_bytes()), and they do no harm. An error: PCRE2
  // gave up.
  Status find_all(std::string_view text, bool ascii,
                  const std::function<void(std::string_view, int)>& sink);
  int groups() const;
  // The edges of the groups: what the pattern says of the text beside them, by the number that
  // find_all() gives.
  const std::vector<GroupEdges>& edges() const;

 private:
  struct Impl;
  explicit Regex(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tally
