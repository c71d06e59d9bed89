// `$names` in commands that nothing here defines.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "engine/base/text.h"
#include "engine/check/names.h"

namespace tally {

namespace {

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_word_start(char c) {
  return is_word_char(c) && !(c >= '0' && c <= '9');
}

struct DollarName {
  std::string name;
  std::string written;  // with the dollar, to find it in the source
};

// The names a command refers to, by string.Template's rules: $name, ${name}; $$ is a dollar.
std::vector<DollarName> dollar_names(std::string_view text) {
  std::vector<DollarName> names;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '$') continue;
    if (i > 0 && text[i - 1] == '\\') continue;
    if (text[i + 1] == '$') {
      ++i;
      continue;
    }
    size_t start = i + 1;
    bool braces = text[start] == '{';
    if (braces) ++start;
    size_t end = start;
    while (end < text.size() && is_word_char(text[end])) ++end;
    if (end == start || !is_word_start(text[start])) continue;
    // ${name:-x} and the like are the shell's own.
    if (braces && (end == text.size() || text[end] != '}')) continue;
    names.push_back(
        {std::string(text.substr(start, end - start)), std::string(text.substr(i, end - i))});
  }
  return names;
}

// Words the commands themselves may give a value to: x=..., for x in, read x. Wide rather than
// narrow.
void collect_assigned(std::string_view command, std::set<std::string>* names) {
  std::string before;
  for (size_t i = 0; i < command.size();) {
    if (!is_word_start(command[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < command.size() && is_word_char(command[end])) ++end;
    std::string word(command.substr(i, end - i));
    bool assigned =
        end < command.size() && (command[end] == '=' || starts_with(command.substr(end), "+="));
    if (assigned || before == "for" || before == "read" || before == "select") names->insert(word);
    if (before != "read") before = word;
    i = end;
  }
}

bool is_builtin(const std::string& name) {
  const std::vector<std::string>& known = builtin_names();
  return std::find(known.begin(), known.end(), name) != known.end();
}

// The built-in prefixes of launchers and batch systems, whose variables exist in the job only.
bool is_job_variable(const std::string& name) {
  for (const char* prefix :
       {"SLURM_", "SLURMD_", "PBS_", "LSB_", "OMPI_", "PMI_", "PMIX_", "CUDA_", "BASH_", "EB"}) {
    if (starts_with(name, prefix)) return true;
  }
  return false;
}

class DollarChecker {
 public:
  DollarChecker(const Benchmark& benchmark, const Sources& sources, Diagnostics& diagnostics)
      : benchmark_(benchmark), sources_(sources), diagnostics_(diagnostics) {}

  void check() {
    for (const Step& step : benchmark_.steps) {
      std::set<std::string> known, visited;
      if (!collect(step, &known, &visited)) continue;
      for (const Operation& op : step.operations) check_text(op.command, step, known);
      check_text(step.launch, step, known);
    }
  }

 private:
  // Adds what a step and its parents define; false when that depends on parameters.
  bool collect(const Step& step, std::set<std::string>* known, std::set<std::string>* visited) {
    if (!visited->insert(step.name.value).second) return true;
    for (const Text& use : step.use) {
      if (use.value.find('$') != std::string::npos) return false;
      auto set = benchmark_.parameter_sets.find(use.value);
      if (set == benchmark_.parameter_sets.end()) continue;
      for (const Parameter& p : set->second.parameters) known->insert(p.name.value);
    }
    for (const Operation& op : step.operations) collect_assigned(op.command.value, known);
    for (const auto& variable : step.env) known->insert(variable.first.value);
    for (const Text& depend : step.depend) {
      known->insert(fmt::format("jube_wp_parent_{}_id", depend.value));
      const Step* parent = benchmark_.find_step(depend.value);
      if (parent && !collect(*parent, known, visited)) return false;
    }
    return true;
  }

  void check_text(const Text& text, const Step& step, const std::set<std::string>& known) {
    std::set<std::string> said;
    for (const DollarName& dollar : dollar_names(text.value)) {
      const std::string& name = dollar.name;
      if (known.count(name) > 0 || is_builtin(name) || is_job_variable(name) ||
          std::getenv(name.c_str()) || !said.insert(name).second) {
        continue;
      }
      std::vector<std::string> candidates(known.begin(), known.end());
      candidates.insert(candidates.end(), builtin_names().begin(), builtin_names().end());
      std::string hint = did_you_mean(name, candidates);
      if (hint.empty()) hint = parameter_elsewhere(name);
      diagnostics_.warning(place_of(text.mark, dollar.written),
                           fmt::format("'{}' is no parameter of step '{}': it must come from the "
                                       "shell environment",
                                       name, step.name.value),
                           hint);
    }
  }

  std::string parameter_elsewhere(const std::string& name) const {
    for (const auto& [set_name, set] : benchmark_.parameter_sets) {
      const auto named = [&](const Parameter& p) { return p.name.value == name; };
      if (std::any_of(set.parameters.begin(), set.parameters.end(), named)) {
        return fmt::format("parameter set '{}' defines it, but the step does not use that set",
                           set_name);
      }
    }
    return {};
  }

  // The place of `written` at or after `mark` in the source, within the next lines; else `mark`.
  Mark place_of(const Mark& mark, const std::string& written) const {
    constexpr uint32_t kLines = 200;
    for (uint32_t line = mark.line; mark.known() && line < mark.line + kLines; ++line) {
      std::string_view text = sources_.line({mark.file, line, 1});
      for (size_t at = text.find(written); at != std::string_view::npos;
           at = text.find(written, at + 1)) {
        size_t end = at + written.size();
        bool whole = end >= text.size() || !is_word_char(text[end]);
        uint32_t column = 1;
        for (size_t i = 0; i < at; ++column) {
          i += std::max<size_t>(1, utf8_length(text.substr(i)));
        }
        if (whole && (line > mark.line || column >= mark.column)) return {mark.file, line, column};
      }
    }
    return mark;
  }

  const Benchmark& benchmark_;
  const Sources& sources_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_dollar_names(const Benchmark& benchmark, const Sources& sources,
                        Diagnostics& diagnostics) {
  DollarChecker(benchmark, sources, diagnostics).check();
}

}  // namespace tally
