#include "engine/workflow/scheduler_table.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cctype>

#include "engine/base/text.h"

namespace tally {
namespace {

bool is_among(char c, const std::string& characters) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || is_one_of(characters, c);
}

bool is_word(const std::string& value, const char* word) {
  return to_lower(strip(value)) == word;
}

// The text about the option. An entry "option:text" is of one whose value has the text.
const std::string* said_of(const std::map<std::string, std::string>& entries,
                           const std::string& name, const std::string& value, std::string* part) {
  for (const auto& [option, key] : entries) {
    const size_t colon = option.find(':');
    if (option.substr(0, colon) != name) continue;
    if (colon == std::string::npos) return &key;
    *part = option.substr(colon + 1);
    // "mem=" is not in "pmem=", and "ncpus=" belongs to "select=" in "select=2:ncpus=4".
    for (size_t at = value.find(*part); at != std::string::npos; at = value.find(*part, at + 1)) {
      if (at == 0 || (!is_name_char(value[at - 1]) && value[at - 1] != ':')) return &key;
    }
  }
  return nullptr;
}

OptionFault has_key_fault(const std::string& name, const std::string& part,
                          const std::string& key) {
  return {fmt::format("option '{}{}' has the meaning of the key '{}'", name,
                      part.empty() ? "" : ": " + part.substr(0, part.find_first_of("=[")), key),
          fmt::format("use '{}' of {} instead", key,
                      key == "signal"  ? "the platform"
                      : key == "nodes" ? "resources"
                                       : "resources or of the platform")};
}

std::optional<OptionFault> taken_fault(const DirectiveRules& rules, const std::string& name,
                                       const std::string& value) {
  const bool bare = contains(rules.without, name);
  if (rules.with_value.empty() || is_word(value, "false")) return std::nullopt;
  if (bare && !value.empty() && !is_word(value, "true")) {
    return OptionFault{fmt::format("option '{}' takes no value, and has '{}'", name, value),
                       fmt::format("write `{}: true`, or `{}: false` to leave it out", name, name)};
  }
  if (!bare && is_word(value, "true")) {
    return OptionFault{fmt::format("option '{}' takes a value, and has none but 'true'", name),
                       "give it its value, or leave it out"};
  }
  return std::nullopt;
}

// The text with its $values. *missing: one of them is empty.
std::string filled(std::string_view text, const std::map<std::string, std::string>& values,
                   bool* missing) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      result += text[at++];
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const auto found = values.find(std::string(text.substr(at + 1, end - at - 1)));
    if (found == values.end() || found->second.empty()) *missing = true;
    if (found != values.end()) result += found->second;
    at = end;
  }
  return result;
}

// A line with its values, without the parts in braces of which one is missing. Empty: the line is
// left out.
std::string directive_line(const std::string& line,
                           const std::map<std::string, std::string>& values) {
  std::string result;
  bool missing = false;
  for (size_t at = 0; at < line.size();) {
    const size_t open = std::min(line.find('{', at), line.size());
    result += filled(std::string_view(line).substr(at, open - at), values, &missing);
    if (open == line.size()) break;
    const size_t close = std::min(line.find('}', open), line.size());
    bool without = false;
    const std::string part =
        filled(std::string_view(line).substr(open + 1, close - open - 1), values, &without);
    if (!without) result += part;
    at = std::min(close + 1, line.size());
  }
  return missing ? std::string() : result;
}

}  // namespace

const std::vector<std::pair<std::string_view, JobMeaning>>& job_meanings() {
  static const std::vector<std::pair<std::string_view, JobMeaning>> meanings = {
      {"unknown", JobMeaning::unknown}, {"queued", JobMeaning::queued},
      {"stuck", JobMeaning::stuck},     {"running", JobMeaning::running},
      {"ending", JobMeaning::ending},   {"ended", JobMeaning::ended},
      {"failed", JobMeaning::failed},   {"cancelled", JobMeaning::cancelled},
      {"timeout", JobMeaning::timeout}, {"memory", JobMeaning::memory},
      {"node", JobMeaning::node},       {"preempted", JobMeaning::preempted},
      {"lost", JobMeaning::lost}};
  return meanings;
}

const std::vector<std::string_view>& directive_values() {
  static const std::vector<std::string_view> names = {
      "name",          "nodes",        "tasks",          "tasks_per_node", "cpus_per_task",
      "cpus_per_node", "slots",        "gpus",           "memory",         "time",
      "time_seconds",  "time_minutes", "stdout",         "stderr",         "partition",
      "account",       "signal",       "signal_minutes", "hint",           "signal_seconds",
      "soft_seconds",  "gpus_per_task"};
  return names;
}

const std::vector<std::string_view>& answer_values() {
  static const std::vector<std::string_view> names = {
      "id", "name", "state", "reason", "nodes", "submitted", "started", "elapsed", "max_rss"};
  return names;
}

JobMeaning meaning_of(const SchedulerTable& table,
                      const std::map<std::string, std::string>& fields) {
  const auto holds = [&](const auto& condition) {
    const auto field = fields.find(condition.first);
    return field != fields.end() &&
           std::ranges::any_of(condition.second, [&](const std::string& pattern) {
             return fnmatch(pattern.c_str(), field->second.c_str(), 0) == 0;
           });
  };
  for (const StateRule& rule : table.states) {
    if (std::ranges::all_of(rule.when, holds)) return rule.meaning;
  }
  return JobMeaning::unknown;
}

std::string directive_word(const SchedulerTable& table, const std::string& text) {
  const DirectiveRules& rules = table.directives;
  if (std::ranges::all_of(text, [&](char c) { return is_among(c, rules.plain); })) return text;
  for (const char quote : rules.quotes) {
    if (text.find(quote) == std::string::npos) return quote + text + quote;
  }
  return text;
}

std::string directive_fault(const SchedulerTable& table, const std::string& text) {
  const DirectiveRules& rules = table.directives;
  if (std::string why = directive_fault(text); !why.empty()) return why;
  const size_t bad = text.find_first_of(rules.never);
  const bool plain = std::ranges::all_of(text, [&](char c) { return is_among(c, rules.plain); });
  const bool quotable = plain || std::ranges::any_of(rules.quotes, [&](char quote) {
                          return text.find(quote) == std::string::npos;
                        });
  if (quotable && bad == std::string::npos) return {};
  const std::string what = bad == std::string::npos ? "quotes of both kinds"
                           : text[bad] == '\\'      ? std::string("a backslash")
                                                    : fmt::format("'{}'", text[bad]);
  return fmt::format("has {}, which {} cannot read in a job script", what, table.title);
}

std::string job_name_word(const SchedulerTable& table, const std::string& name) {
  std::string word = name;
  for (char& c : word) {
    if (!is_among(c, table.directives.in_name)) c = '_';
  }
  if (word.empty() || !is_letter(word[0])) word.insert(0, table.letter);
  return word;
}

std::optional<OptionFault> option_fault(const SchedulerTable& table, const std::string& name,
                                        const std::string& value, const JobRequests& requests) {
  const DirectiveRules& rules = table.directives;
  if (auto fault = option_name_fault(name)) return fault;
  const std::string text(strip(value));
  if (const std::string why = directive_fault(table, text); !why.empty())
    return OptionFault{fmt::format("option '{}' {}", name, why), "give it another value"};
  if (const std::string key = key_named(name); !key.empty()) return has_key_fault(name, "", key);
  std::string part;
  if (const std::string* why = said_of(rules.own, name, text, &part)) {
    return OptionFault{
        fmt::format("option '{}' is one that Tally sets itself or cannot follow a job with", name),
        *why};
  }
  part.clear();
  if (const std::string* key = said_of(rules.keys, name, text, &part)) {
    // An option of GPUs is one of two ways to ask for them.
    if (*key != "gpus_per_node" || !part.empty()) return has_key_fault(name, part, *key);
    if (requests.gpus) {
      return OptionFault{fmt::format("option '{}' contradicts the key 'gpus_per_node'", name),
                         "leave one of the two out"};
    }
  }
  if (!rules.with_value.empty() && !contains(rules.with_value, name) &&
      !contains(rules.without, name)) {
    std::vector<std::string> all = rules.with_value;
    all.insert(all.end(), rules.without.begin(), rules.without.end());
    std::string hint = did_you_mean(name, all);
    const auto meant = std::ranges::find_if(
        rules.keys, [&](const auto& rule) { return rule.first.ends_with(":" + name + "="); });
    if (meant != rules.keys.end()) hint = fmt::format("use '{}' of resources", meant->second);
    return OptionFault{fmt::format("{} has no option '-{}'", table.submit.front(), name),
                       hint.empty() ? "its options: " + join(all, ", ") : hint};
  }
  return taken_fault(rules, name, text);
}

std::string option_lines(const SchedulerTable& table, const NamedValues& options) {
  std::string lines;
  for (const auto& [name, given] : options) {
    const std::string value(strip(given));
    if (is_word(value, "false")) continue;
    if (!lines.empty()) lines += '\n';
    const bool bare = value.empty() || is_word(value, "true");
    lines += option_line(table.directives.prefix + table.directives.option, name,
                         bare                                       ? ""
                         : contains(table.directives.several, name) ? value
                                                                    : directive_word(table, value));
  }
  return lines;
}

bool adds_up(const SchedulerTable& table, const std::string& option) {
  return contains(table.directives.adds_up, option);
}

std::string memory_word(const SchedulerTable& table, const std::string& amount) {
  const size_t digits = std::min(amount.find_first_not_of("0123456789"), amount.size());
  std::string unit = to_lower(amount.substr(digits));
  if (digits == 0) return {};
  if (unit.size() > 1 && unit.back() == 'b') unit.pop_back();
  if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
  const auto known = table.directives.memory.find(unit.empty() ? "m" : unit);
  if (known == table.directives.memory.end()) return {};
  return amount.substr(0, digits) + known->second;
}

std::string request_fault(const SchedulerTable& table, std::string_view key,
                          const std::string& value) {
  if (key != "memory" || value.empty() || !memory_word(table, value).empty()) return {};
  if (table.directives.memory.empty()) return "cannot be asked of " + table.title;
  return "is not an amount, as 64G, 500M or 4096 (MiB)";
}

std::string directive_lines(const SchedulerTable& table,
                            const std::map<std::string, std::string>& values,
                            const NamedValues& options) {
  std::string lines;
  for (const std::string& line : table.directives.lines) {
    const std::string name = line.substr(0, line.find_first_of(" ="))
                                 .substr(std::min(line.find_first_not_of('-'), line.size()));
    const bool replaced =
        !adds_up(table, name) &&
        std::ranges::any_of(options, [&](const auto& option) { return option.first == name; });
    const std::string made = replaced ? std::string() : directive_line(line, values);
    if (made.empty()) continue;
    if (!lines.empty()) lines += '\n';
    lines += table.directives.prefix + made;
  }
  return lines;
}

}  // namespace tally
