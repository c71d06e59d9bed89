#include "engine/expand/substitute.h"

#include <algorithm>

#include "engine/base/text.h"

namespace tally {
namespace {

constexpr int max_rounds = 5;

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// A run of dollars and the name that follows it.
struct Run {
  size_t dollars = 0;
  size_t after = 0;       // position after the run
  size_t end = 0;         // position after the reference, if there is one
  std::string_view name;  // empty: not a reference
};

// Reads the run of dollars that starts at text[at]. After an odd number of dollars, a name is a
// reference, whether it is bare or in braces.
Run read_run(std::string_view text, size_t at) {
  Run run;
  run.after = at;
  while (run.after < text.size() && text[run.after] == '$') ++run.after;
  run.dollars = run.after - at;
  run.end = run.after;
  if (run.dollars % 2 == 0 || run.after == text.size()) return run;
  const bool braces = text[run.after] == '{';
  const size_t begin = run.after + (braces ? 1 : 0);
  if (begin >= text.size() || !is_name_start(text[begin])) return run;
  size_t end = begin + 1;
  while (end < text.size() && is_name_char(text[end])) ++end;
  if (braces && (end == text.size() || text[end] != '}')) return run;
  run.name = text.substr(begin, end - begin);
  run.end = end + (braces ? 1 : 0);
  return run;
}

// Appends `value` with every dollar doubled, so that further rounds leave it alone.
void append_protected(std::string_view value, std::string& out) {
  for (const char c : value) {
    if (c == '$') out += '$';
    out += c;
  }
}

// One round: references are replaced by protected values, and everything else stays, including
// escapes. Returns whether anything was replaced.
bool round(std::string_view text, const Lookup& lookup, std::string& out) {
  bool changed = false;
  size_t at = 0;
  while (at < text.size() && out.size() <= longest_text) {
    const size_t dollar = text.find('$', at);
    if (dollar == std::string_view::npos) break;
    const Run run = read_run(text, dollar);
    out.append(text, at, dollar - at);
    const std::string* value = run.name.empty() ? nullptr : lookup(run.name);
    if (value == nullptr) {
      out.append(text, dollar, run.after - dollar);
      at = run.after;
    } else {
      out.append(run.dollars - 1, '$');
      append_protected(*value, out);
      at = run.end;
      changed = true;
    }
  }
  if (at < text.size()) out.append(text, at);
  return changed;
}

// The last pass: two dollars become one. The last dollar before white space or the end is doubled,
// unless it is the odd one of a longer run. The shell receives the same text from JUBE.
std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    const size_t dollar = text.find('$', at);
    if (dollar == std::string_view::npos) break;
    out.append(text, at, dollar - at);
    size_t after = dollar;
    while (after < text.size() && text[after] == '$') ++after;
    const size_t count = after - dollar;
    size_t kept = count / 2 + count % 2;
    const bool at_end = after == text.size() || is_space(text[after]);
    if (at_end && (count % 2 == 0 || count == 1)) ++kept;
    out.append(kept, '$');
    at = after;
  }
  if (at < text.size()) out.append(text, at);
  return out;
}

std::string substitute_in_rounds(std::string current, const Lookup& lookup) {
  for (int i = 0; i < max_rounds; ++i) {
    std::string next;
    next.reserve(current.size() + 32);
    if (!round(current, lookup, next)) break;
    current.swap(next);
    if (current.size() > longest_text) break;
  }
  return current;
}

// Calls `run(dollars)` for each run of dollars and copies everything else.
template <typename OfRun>
std::string with_runs(std::string_view text, const OfRun& run) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t dollar = std::min(text.find('$', at), text.size());
    out.append(text, at, dollar - at);
    at = std::min(text.find_first_not_of('$', dollar), text.size());
    out.append(run(at - dollar), '$');
  }
  return out;
}

}  // namespace

std::string substitute(std::string_view text, const Lookup& lookup) {
  if (text.find('$') == std::string_view::npos) return std::string(text);
  const std::string substituted = substitute_in_rounds(std::string(text), lookup);
  return substituted.size() > longest_text ? substituted : unescape(substituted);
}

std::string substitute_parameters(std::string_view text, const Lookup& lookup) {
  if (text.find('$') == std::string_view::npos) return std::string(text);
  // Each pair is written twice, so that one of it is left when the escapes are taken off.
  const std::string escaped =
      with_runs(text, [](size_t dollars) { return dollars / 2 * 4 + dollars % 2; });
  const std::string substituted = substitute_in_rounds(escaped, lookup);
  if (substituted.size() > longest_text) return substituted;
  return with_runs(substituted, [](size_t dollars) { return dollars / 2 + dollars % 2; });
}

std::vector<std::string> dollar_names(std::string_view text) {
  std::vector<std::string> names;
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at)) {
    const Run run = read_run(text, at);
    if (!run.name.empty() && !contains(names, run.name)) {
      names.emplace_back(run.name);
    }
    at = run.after;
  }
  return names;
}

bool has_dollar_name(std::string_view text) {
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at)) {
    const Run run = read_run(text, at);
    if (!run.name.empty()) return true;
    at = run.after;
  }
  return false;
}

}  // namespace tally
