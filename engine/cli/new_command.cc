#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"
#include "engine/python/python_regex.h"
#include "engine/python/value.h"
#include "engine/read/yaml_writer.h"
#include "engine/workflow/pattern_uses.h"

namespace tally {
namespace {

// A word of the command that is a number, or ends in one behind "=".
struct ProposedParameter {
  std::string name;   // from the option before it: "batch_size" of --batch-size; else "n"
  std::string value;  // as it is written
  size_t word = 0;    // which word of the command
};

// A number behind a name in the output: "time = 1.5 s", "loss: 2.31".
struct ProposedMetric {
  std::string name;     // "time"
  std::string pattern;  // a regular expression with one of JUBE's building blocks
  std::string unit;     // empty: none
  int matches = 1;      // of the pattern in the output; the first is the metric's value
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

bool is_number(const std::string& text) {
  static const std::regex number(R"([-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?)");
  return std::regex_match(text, number);
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

// The numbers of a line that have a name: up to five words, then "=", ":" or white space. A word
// behind a number is its unit, unless it is the name of the next: "step 1 loss 2.5".
std::vector<NamedNumber> numbers_of(const std::string& line) {
  static const std::regex named(
      R"((^|[^A-Za-z0-9_.-])([A-Za-z][A-Za-z0-9_/%-]*(?:[ \t]+[A-Za-z][A-Za-z0-9_/%-]*){0,4}(?:[ \t]*\([A-Za-z /%]+\))?))"
      R"(([ \t]*[=:][ \t]*|[ \t]+)([-+]?[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)(?![0-9.:_]|-[0-9]))");
  static const std::regex unit(
      R"(^[ \t]*([A-Za-z%][A-Za-z0-9/%^-]{0,11})(?![A-Za-z0-9/%^_-]|[ \t]*[=:]|[ \t]+[-+]?[0-9]))");
  static const std::set<std::string> counters = {"step",  "iteration", "iter",
                                                 "epoch", "rank",      "version"};
  static const std::set<std::string> no_units = {"and", "at",  "by", "for", "from",
                                                 "in",  "is",  "of", "on",  "out",
                                                 "per", "the", "to", "was", "with"};
  std::vector<NamedNumber> found;
  std::smatch match;
  for (auto at = line.cbegin(); std::regex_search(at, line.cend(), match, named);
       at = match[0].second) {
    const bool begins = strip(std::string(line.cbegin(), match[2].first)).empty();
    NamedNumber number{match[2].str(), match[3].str(), match[4].str(), "", begins};
    std::smatch behind;
    const std::string rest(match[0].second, line.cend());
    if (std::regex_search(rest, behind, unit) && no_units.count(behind[1].str()) == 0)
      number.unit = behind[1].str();
    if (counters.count(to_lower(number.name)) == 0) found.push_back(std::move(number));
  }
  return found;
}

// The matches of the pattern with a number behind it in the output, as a run would read them.
std::vector<std::string> matches_of(const std::string& pattern, const std::string& output) {
  std::vector<std::string> matches;
  std::unique_ptr<Regex> regex;
  const Status compiled =
      Regex::compile(pattern + *pattern_building_block("jube_pat_fp", true), false, &regex);
  const auto keep = [&](std::string_view match, int) {
    if (!match.empty()) matches.emplace_back(match);
  };
  if (!compiled || !regex->find_all(output, false, keep)) return {};
  return matches;
}

// Which way is better, where the unit says it.
std::string better_of(const std::string& unit) {
  static const std::set<std::string> times = {"s",  "sec", "secs",    "second", "seconds", "ms",
                                              "us", "ns",  "minutes", "min",    "h",       "hours"};
  if (times.count(to_lower(unit)) != 0) return "lower";
  const bool rate =
      unit.find("/s") != std::string::npos || to_lower(unit).find("flops") != std::string::npos;
  return rate ? "higher" : "";
}

std::string metric_line(const ProposedMetric& metric) {
  const std::string better = better_of(metric.unit);
  std::string line = "  " + yaml_scalar(metric.name) + ": ";
  if (metric.unit.empty()) {
    line += yaml_scalar(metric.pattern);
  } else {
    line += fmt::format("{{_: {}, unit: {}{}}}", yaml_scalar(metric.pattern),
                        yaml_scalar(metric.unit), better.empty() ? "" : ", better: " + better);
  }
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
    found.push_back({unused(name.empty() ? "n" : name, taken), value, i});
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
                                  as_pattern(number.name + number.separator);
      if (!tried.insert(pattern).second) continue;
      const std::vector<std::string> matches = matches_of(pattern, output);
      // Another line may have the name in a longer one: "time" in "setup time".
      if (matches.empty() || python_float(matches.front()) != python_float(number.value)) continue;
      found.push_back({unused(as_name(number.name), taken), pattern + "$jube_pat_fp", number.unit,
                       static_cast<int>(matches.size())});
    }
  }
  return found;
}

// The text of a workflow in the short form that runs the command and reads what it printed. An empty
// command: an example that runs everywhere.
std::string proposed_workflow(const std::string& name, const std::vector<std::string>& command,
                              const std::string& output) {
  const std::string head = fmt::format(
      "# Look at the plan with `tally run -n {0}.yaml`, run it with `tally run {0}.yaml`.\n", name);
  if (command.empty()) return head + fmt::format(kExample, name);
  std::vector<ProposedMetric> metrics = proposed_metrics(output, kMostMetrics);
  std::vector<ProposedParameter> parameters = proposed_parameters(command);
  std::set<std::string> taken;
  for (const ProposedParameter& parameter : parameters) taken.insert(parameter.name);
  for (ProposedMetric& metric : metrics) metric.name = unused(metric.name, taken);
  std::string text = head + fmt::format("name: {}\n", yaml_scalar(name));
  if (!parameters.empty())
    text += "parameters:                 # more values are more points: [1, 2, 4]\n";
  for (const ProposedParameter& parameter : parameters)
    text += fmt::format("  {}: [{}]\n", yaml_scalar(parameter.name), parameter.value);
  text += fmt::format("run: {}\n", yaml_scalar(run_line(command, parameters)));
  text += "# repeat: 6                 # each point six times: the median and its 95 % interval\n";
  if (metrics.empty())
    return text +
           "# The command printed no name with a number. A metric is a regular expression with "
           "one\n"
           "# number in it: 'time = $jube_pat_fp'\n";
  text += "metrics:\n";
  for (const ProposedMetric& metric : metrics) text += metric_line(metric);
  return text;
}

// tally new: writes a first workflow.

// Runs the command, prints what it prints, and keeps that in *output. Returns its exit code.
int run_and_keep(const std::vector<std::string>& command, std::string* output) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + shell_quote(word);
  std::fflush(stdout);
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return -1;
  std::array<char, 4096> part{};
  for (size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    output->append(part.data(), n);
    std::fwrite(part.data(), 1, n, stdout);
  }
  std::fflush(stdout);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A name that stands in a command line and in the names of a file and a folder as it is.
bool is_simple_name(const std::string& name) {
  return !name.empty() && name.front() != '-' && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return is_name_char(c) || c == '.' || c == '-' || static_cast<unsigned char>(c) >= 128;
         });
}

}  // namespace

int new_command(const Settings& settings, const NewArgs& args) {
  std::string name = args.name;
  if (name.ends_with(".yaml")) name.resize(name.size() - std::string_view(".yaml").size());
  const std::string file = name + ".yaml";
  if (!is_simple_name(name)) {
    print_error(settings, fmt::format("'{}' is no name for a workflow", args.name),
                "letters, digits, '.', '_' and '-': tally new pi -- ./pi 1000000 writes pi.yaml");
    return kBadInput;
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(file))) {
    print_error(settings, fmt::format("'{}' is there already", file), "take another name");
    return kBadInput;
  }
  std::string output;
  if (!args.command.empty()) {
    if (const int code = run_and_keep(args.command, &output); code != 0) {
      print_error(settings,
                  fmt::format("the command ended with exit code {}: no file was written", code));
      return kFailed;
    }
  }
  const std::string text = proposed_workflow(name, args.command, output);
  if (print_if_error(settings, write_file(file, text))) return kFailed;
  fmt::print("{}{}:\n{}", output.empty() ? "" : "\n", file, text);
  return kFine;
}

// CLI11 does not tell what stands before "--": the first word of a command may have become the name.
bool Application::divide_words_of_new() {
  Words words = std::move(new_.command);
  if (!new_.name.empty()) words.insert(words.begin(), new_.name);
  const auto command = words.end() - static_cast<std::ptrdiff_t>(behind_);
  if (command - words.begin() > 1) {
    print_error(settings_, "a workflow has one name, and a command stands behind '--'",
                fmt::format("{} new {} -- {} ...", settings_.command, words[0], words[1]));
    return false;
  }
  new_.command = {command, words.end()};
  if (command != words.begin()) {
    new_.name = words.front();
  } else {
    new_.name = behind_ == 0 ? "" : std::filesystem::path(new_.command.front()).stem().string();
  }
  return new_.command.empty() || may_execute("new");
}

void Application::add_new() {
  CLI::App* sub =
      command("new", "write a first workflow, with what a command takes and prints",
              [this] { return divide_words_of_new() ? new_command(settings_, new_) : kBadInput; });
  sub->add_option("name", new_.name, "NAME.yaml is written; without it, after the program")
      ->option_text("[NAME]");
  sub->add_option("command", new_.command, "a program and its arguments, which is run once")
      ->option_text("[-- COMMAND ...]");
}

}  // namespace tally
