#include "engine/cli/proposed_workflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "engine/base/text.h"
#include "engine/python/python_regex.h"
#include "engine/python/value.h"
#include "engine/read/short_form.h"
#include "engine/read/yaml_writer.h"
#include "engine/workflow/pattern_uses.h"

namespace tally {
namespace {

// A word of the command that is a number, or ends in one behind "=".
struct ProposedParameter {
  std::string name;    // from the option before it: "batch_size" of --batch-size; else "n"
  std::string value;   // as it is written
  size_t word = 0;     // which word of the command
  bool named = false;  // by an option
};

// A number behind a name in the output ("time = 1.5 s", "loss: 2.31"), or a column of its rows.
struct ProposedMetric {
  std::string name;     // "time"
  std::string pattern;  // a regular expression with one of JUBE's building blocks
  std::string unit;     // empty: none
  std::string value = {};
  int matches = 1;     // of the pattern in the output; the first is the metric's value
  bool whole = false;  // its type is int
};

// Lines of numbers that stand together in the output, one for each message size or the like.
struct PrintedRows {
  std::vector<ProposedMetric> columns;  // empty: there are none
  size_t lines = 0;
};

constexpr size_t kMostMetrics = 8;
constexpr size_t kLongestLine = 400;

// A name that parameters and patterns may have: "Tokens per second" is tokens_per_second.
std::string as_name(const std::string& text) {
  std::string name;
  for (const char c : to_lower(text)) {
    if (is_name_char(c)) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (!name.empty() && is_digit(name.front())) name.insert(0, 1, 'n');
  return name;
}

// The name itself, or with a number behind it if it is taken. It is taken from then on.
std::string unused(std::string name, std::set<std::string>& taken) {
  const std::string first = name;
  for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}_{}", first, i);
  return name;
}

// A decimal number: no "inf", "nan" or "1_000".
bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789.+-eE") == std::string::npos && finite_float(text);
}

// The text as a regular expression, with any white space for more than one space.
std::string as_pattern(const std::string& text) {
  std::string pattern;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find_first_not_of(" \t", i), text.size());
    if (end > i) {
      pattern += end - i == 1 && text[i] == ' ' ? " " : R"(\s+)";
      i = end;
      continue;
    }
    if (std::string_view(R"(.^*+?{}[]()|\)").find(text[i]) != std::string_view::npos)
      pattern += '\\';
    pattern += text[i++];
  }
  return pattern;
}

struct NamedNumber {
  std::string name, separator, value, unit;
  bool begins_line = false;
};

// The groups of each match of the pattern in the text; none where PCRE2 gives up.
std::vector<std::vector<std::string_view>> groups_of(Regex& regex, std::string_view text) {
  std::vector<std::vector<std::string_view>> matches;
  const auto keep = [&](std::string_view group, int number) {
    if (number <= 1) matches.emplace_back();
    matches.back().push_back(group);
  };
  if (!regex.find_all(text, false, keep)) return {};
  return matches;
}

Regex& compiled(std::string_view pattern) {
  static std::map<std::string, std::unique_ptr<Regex>, std::less<>> known;
  const auto found = known.find(pattern);
  if (found != known.end()) return *found->second;
  std::unique_ptr<Regex>& regex = known[std::string(pattern)];
  [[maybe_unused]] const Status valid = Regex::compile(pattern, false, &regex);
  assert(valid);  // it is one of this file's
  return *regex;
}

// The numbers of a line that have a name: up to five words, then "=", ":" or white space. A word
// behind a number is its unit, unless it is the name of the next: "step 1 loss 2.5".
std::vector<NamedNumber> numbers_of(const std::string& line) {
  constexpr const char* kNamed =
      R"((^|[^A-Za-z0-9_.-])([A-Za-z][A-Za-z0-9_/%-]*(?:[ \t]+[A-Za-z][A-Za-z0-9_/%-]*){0,4}(?:[ \t]*\([A-Za-z /%]+\))?))"
      R"(([ \t]*[=:][ \t]*|[ \t]+)([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)(?![0-9.:_]|-[0-9]))";
  constexpr const char* kUnit =
      R"(^[ \t]*([A-Za-z%][A-Za-z0-9/%^-]{0,11})(?![A-Za-z0-9/%^_-]|[ \t]*[=:]|[ \t]+[-+]?[0-9]))";
  static const std::set<std::string> counters = {"step",  "iteration", "iter",
                                                 "epoch", "rank",      "version"};
  static const std::set<std::string> no_units = {"and", "at",  "by", "for", "from",
                                                 "in",  "is",  "of", "on",  "out",
                                                 "per", "the", "to", "was", "with"};
  std::vector<NamedNumber> found;
  for (const std::vector<std::string_view>& match : groups_of(compiled(kNamed), line)) {
    const std::string_view before(line.data(), static_cast<size_t>(match[1].data() - line.data()));
    NamedNumber number{std::string(match[1]), std::string(match[2]), std::string(match[3]), "",
                       strip(before).empty()};
    const auto end = static_cast<size_t>(match[3].data() + match[3].size() - line.data());
    const auto behind = groups_of(compiled(kUnit), std::string_view(line).substr(end));
    if (!behind.empty() && no_units.count(std::string(behind[0][0])) == 0)
      number.unit = behind[0][0];
    if (counters.count(to_lower(number.name)) == 0) found.push_back(std::move(number));
  }
  return found;
}

// The matches of the pattern in the output, as a run would read them.
std::vector<std::string> matches_of(const std::string& pattern, const std::string& output) {
  std::vector<std::string> matches;
  std::string text = pattern;
  for (const char* block : {"jube_pat_fp", "jube_pat_int"}) {
    const size_t at = text.find(std::string("$") + block);
    if (at != std::string::npos)
      text.replace(at, std::string_view(block).size() + 1, *pattern_building_block(block, true));
  }
  std::unique_ptr<Regex> regex;
  const Status compiles = Regex::compile(text, false, &regex);
  const auto keep = [&](std::string_view match, int) {
    if (!match.empty()) matches.emplace_back(match);
  };
  if (!compiles || !regex->find_all(output, false, keep)) return {};
  return matches;
}

// Which way is better, where the unit says it.
std::string better_of(const std::string& unit) {
  static const std::set<std::string> times = {"s",  "sec",   "secs", "second",  "seconds",
                                              "ms", "us",    "ns",   "minutes", "min",
                                              "h",  "hours", "usec", "msec",    "nsec"};
  if (times.count(to_lower(unit)) != 0) return "lower";
  const bool rate =
      unit.find("/s") != std::string::npos || to_lower(unit).find("flops") != std::string::npos;
  return rate ? "higher" : "";
}

std::string metric_line(const ProposedMetric& metric) {
  const std::string better = better_of(metric.unit);
  std::string keys;
  if (!metric.unit.empty()) keys += ", unit: " + yaml_scalar(metric.unit);
  if (metric.whole) keys += ", type: int";
  if (!better.empty()) keys += ", better: " + better;
  const std::string pattern = yaml_scalar(metric.pattern);
  std::string line = fmt::format("  {}: {}", yaml_scalar(metric.name),
                                 keys.empty() ? pattern : "{_: " + pattern + keys + "}");
  if (metric.matches > 1)
    line += fmt::format("  # the first of {}; {}_last, _min, _max, _avg are columns, too",
                        metric.matches, metric.name);
  return line + "\n";
}

// The command with $NAME in place of the numbers. Its other dollars are the shell's.
std::string run_line(const std::vector<std::string>& command,
                     const std::vector<ProposedParameter>& parameters) {
  std::vector<std::string> words;
  for (size_t i = 0; i < command.size(); ++i) {
    const auto found = std::ranges::find_if(
        parameters, [&](const ProposedParameter& parameter) { return parameter.word == i; });
    std::string word = command[i];
    if (found != parameters.end()) word.resize(word.size() - found->value.size());
    const bool named = word.ends_with('=');
    if (named) word.pop_back();
    const bool value_alone = found != parameters.end() && word.empty();
    std::string shown;
    for (const char c : value_alone ? word : shell_quote(word))
      shown += c == '$' ? "$$" : std::string(1, c);
    if (named) shown += '=';
    words.push_back(found == parameters.end() ? shown : shown + "$" + found->name);
  }
  return join(words, " ");
}

constexpr const char* kExample =
    "name: {0}\n"
    "parameters: {{size: [1, 2, 4]}}             # a list is several points\n"
    "run: sh -c 'echo \"work = $size\"'            # the command; $NAME is a parameter's value\n"
    "metrics:\n"
    "  work: 'work = $jube_pat_fp'              # what is read from its output\n";

std::vector<ProposedParameter> proposed_parameters(const std::vector<std::string>& command) {
  std::vector<ProposedParameter> found;
  std::set<std::string> taken;
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const size_t equals = word.find('=');
    const std::string value = equals == std::string::npos ? word : word.substr(equals + 1);
    if (!is_number(value)) continue;
    std::string name;
    if (equals != std::string::npos) {
      name = as_name(word.substr(0, equals));
    } else if (command[i - 1].size() > 1 && command[i - 1].front() == '-' &&
               !is_number(command[i - 1])) {
      name = as_name(command[i - 1]);
    }
    found.push_back({unused(name.empty() ? "n" : name, taken), value, i, !name.empty()});
  }
  return found;
}

// At most `most`, those of the output's first lines. The pattern's first match in this output is the
// number that it was made for.
std::vector<ProposedMetric> proposed_metrics(const std::string& output, size_t most) {
  constexpr size_t kMostTried = 64;
  std::vector<ProposedMetric> found;
  std::set<std::string> taken, tried;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.size() > kLongestLine) continue;
    for (const NamedNumber& number : numbers_of(line)) {
      if (found.size() == most || tried.size() == kMostTried) return found;
      const std::string pattern = (number.begins_line ? R"(^\s*)" : R"((?<![\w.-]))") +
                                  as_pattern(number.name + number.separator) + "$jube_pat_fp";
      if (!tried.insert(pattern).second) continue;
      const std::vector<std::string> matches = matches_of(pattern, output);
      // Another line may have the name in a longer one: "time" in "setup time".
      if (matches.empty() || python_float(matches.front()) != python_float(number.value)) continue;
      found.push_back({unused(as_name(number.name), taken), pattern, number.unit, number.value,
                       static_cast<int>(matches.size())});
    }
  }
  return found;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::istringstream words(line);
  std::vector<std::string> found;
  for (std::string word; words >> word;) found.push_back(word);
  return found;
}

// The titles of `count` columns in the line above them, as "# Size     Latency (us)": words that two
// spaces part, or single words with what is in brackets behind them. Empty: they are not as many.
std::vector<std::string> titles_of(std::string line, size_t count) {
  std::ranges::replace(line, '\t', ' ');
  const size_t begin = line.find_first_not_of("# ");
  if (begin == std::string::npos) return {};
  std::vector<std::string> apart, single;
  for (size_t at = begin; at < line.size();) {
    const size_t end = std::min(line.find("  ", at), line.size());
    apart.emplace_back(strip(line.substr(at, end - at)));
    at = std::min(line.find_first_not_of(' ', end), line.size());
  }
  if (apart.size() == count) return apart;
  for (const std::string& word : fields_of(line.substr(begin))) {
    const bool in_brackets = word.front() == '(' || word.front() == '[';
    if (in_brackets && !single.empty()) {
      single.back() += ' ' + word;
    } else {
      single.push_back(word);
    }
  }
  return single.size() == count ? single : std::vector<std::string>();
}

// The first lines of the most that stand together and have as many numbers each, two at least, and
// no other words.
struct Block {
  size_t begin = 0, lines = 0, columns = 0;
};
Block longest_block(const std::vector<std::string>& lines) {
  Block longest, block;
  for (size_t i = 0; i <= lines.size(); ++i) {
    std::vector<std::string> words;
    if (i < lines.size() && lines[i].size() <= kLongestLine) words = fields_of(lines[i]);
    const size_t columns = std::ranges::all_of(words, is_number) ? words.size() : 0;
    if (columns != block.columns) block = {i, 0, columns};
    ++block.lines;
    if (columns >= 2 && columns <= kMostMetrics && block.lines > longest.lines) longest = block;
  }
  constexpr size_t kFewest = 3;
  return longest.lines < kFewest ? Block() : longest;
}

// A column's pattern: the number with the other words of the line around it.
std::string column_pattern(const Block& block, size_t column, bool whole, const char* word) {
  std::string pattern = R"(^\s*)";
  for (size_t i = 0; i < block.columns; ++i) {
    if (i > 0) pattern += R"(\s+)";
    pattern += i != column ? word : whole ? "$jube_pat_int" : "$jube_pat_fp";
  }
  return pattern + R"(\s*$)";
}

// "Latency (us)" is latency in us, "MB/s" is mb_s in MB/s.
void name_column(const std::string& title, size_t number, ProposedMetric* column) {
  const size_t bracket = title.find_first_of("([", 1);
  const size_t end = title.find_first_of(")]", std::min(bracket, title.size()));
  column->name = as_name(title.substr(0, bracket));
  if (column->name.empty()) column->name = fmt::format("column_{}", number);
  if (end != std::string::npos) {
    column->unit = title.substr(bracket + 1, end - bracket - 1);
  } else if (title.find("/s") != std::string::npos) {
    column->unit = title;
  }
}

// The rows that the output has, the first column of which numbers them.
PrintedRows printed_rows(const std::string& output, std::set<std::string>& taken) {
  std::vector<std::string> lines;
  std::istringstream text(output);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  const Block block = longest_block(lines);
  PrintedRows rows;
  rows.lines = block.lines;
  std::vector<std::string> titles;
  if (block.lines > 0 && block.begin > 0) titles = titles_of(lines[block.begin - 1], block.columns);
  titles.resize(block.columns);
  for (size_t i = 0; i < block.columns; ++i) {
    ProposedMetric column;
    column.whole = true;
    for (size_t line = block.begin; line < block.begin + block.lines; ++line) {
      const std::string word = fields_of(lines[line])[i];
      column.whole = column.whole && word.find_first_not_of("0123456789") == std::string::npos;
    }
    name_column(titles[i], i + 1, &column);
    column.name = unused(column.name, taken);
    // Other lines of the output may have as many words.
    column.pattern = column_pattern(block, i, column.whole, R"(\S+)");
    if (matches_of(column.pattern, output).size() != block.lines)
      column.pattern = column_pattern(block, i, column.whole, R"([-+.\deE]+)");
    rows.columns.push_back(std::move(column));
  }
  return rows;
}

// Names the parameters that the output repeats as it does. They do not become metrics then. A value of one
// digit may be there by chance.
void name_echoes(std::vector<ProposedParameter>& parameters, std::vector<ProposedMetric>& metrics,
                 std::set<std::string>& taken) {
  for (ProposedParameter& parameter : parameters) {
    const auto is_echo = [&](const ProposedMetric& metric) {
      return metric.value == parameter.value && (!parameter.named || metric.name == parameter.name);
    };
    if (parameter.value.size() < 2 || std::ranges::count_if(metrics, is_echo) != 1) continue;
    const auto echo = std::ranges::find_if(metrics, is_echo);
    if (!parameter.named) {
      taken.erase(parameter.name);
      parameter.name = unused(echo->name, taken);
    }
    metrics.erase(echo);
  }
}

std::string parameter_lines(const std::vector<ProposedParameter>& parameters) {
  if (parameters.empty()) return "";
  std::string text = "parameters:                 # more values are more points: [1, 2, 4]\n";
  for (const ProposedParameter& parameter : parameters)
    text += fmt::format("  {}: [{}]\n", yaml_scalar(parameter.name), parameter.value);
  return text;
}

// A command that printed no number with a name: the time that it takes, by the shell's clock. Words
// within the shell's text are no files to Tally, so that `files` names them.
std::string timed_lines(const std::string& line) {
  std::set<std::string> files;
  add_names_beside(line, ".", &files);
  const std::string timed = R"(TIMEFORMAT="time = %R"; time )" + line;
  std::string text = fmt::format("run: {}\n", yaml_scalar("bash -c " + shell_quote(timed)));
  std::vector<std::string> names;
  for (const std::string& file : files) names.push_back(yaml_scalar(file));
  if (!names.empty()) text += fmt::format("files: [{}]\n", join(names, ", "));
  return text;
}

constexpr const char* kTimeMetric =
    "metrics:                    # it printed no name with a number: the time that it takes\n"
    "  time: {_: 'time = $jube_pat_fp', file: stderr, unit: s, better: lower}\n";

}  // namespace

std::string proposed_workflow(const std::string& name, const std::vector<std::string>& command,
                              const std::string& output) {
  const std::string head = fmt::format(
      "# Look at the plan with `tally run -n {0}.yaml`, run it with `tally run {0}.yaml`.\n", name);
  if (command.empty()) return head + fmt::format(kExample, name);
  std::vector<ProposedParameter> parameters = proposed_parameters(command);
  std::set<std::string> taken;
  for (const ProposedParameter& parameter : parameters) taken.insert(parameter.name);
  std::vector<ProposedMetric> named = proposed_metrics(output, kMostMetrics);
  name_echoes(parameters, named, taken);
  const PrintedRows rows = printed_rows(output, taken);
  for (ProposedMetric& metric : named) metric.name = unused(metric.name, taken);
  std::string text =
      head + fmt::format("name: {}\n", yaml_scalar(name)) + parameter_lines(parameters);
  const bool timed = rows.columns.empty() && named.empty();
  const std::string line = run_line(command, parameters);
  text += timed ? timed_lines(line) : fmt::format("run: {}\n", yaml_scalar(line));
  text += "# repeat: 6                 # each point six times: the median and its 95 % interval\n";
  if (timed) return text + kTimeMetric;
  if (!rows.columns.empty())
    text += fmt::format("rows: {:<21} # a row for each of the {} lines of numbers\n",
                        yaml_scalar(rows.columns[0].name), rows.lines);
  text += "metrics:\n";
  for (const ProposedMetric& column : rows.columns) text += metric_line(column);
  for (const ProposedMetric& metric : named) text += metric_line(metric);
  if (!rows.columns.empty())
    text += fmt::format("# chart: {{name: {}, x: {}, y: {}, log: x}}\n", yaml_scalar(name),
                        yaml_scalar(rows.columns[0].name), yaml_scalar(rows.columns[1].name));
  return text;
}

}  // namespace tally
