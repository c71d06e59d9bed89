#include "engine/check/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "engine/base/text.h"

namespace tally {

namespace {

bool has_parameter(const std::string& text) {
  return text.find('$') != std::string::npos;
}

template <typename Map>
std::vector<std::string> keys_of(const Map& map) {
  std::vector<std::string> keys;
  for (const auto& entry : map) keys.push_back(entry.first);
  return keys;
}

template <typename List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& item : list) names.push_back(item.name.value);
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class ReferenceChecker {
 public:
  ReferenceChecker(const Benchmark& benchmark, Diagnostics& diagnostics)
      : benchmark_(benchmark), diagnostics_(diagnostics), steps_(names_of(benchmark.steps)) {}

  void check() {
    for (const Step& step : benchmark_.steps) check_step(step);
    check_cycles();
    std::vector<std::string> patterns = keys_of(benchmark_.pattern_sets);
    for (const Analyser& analyser : benchmark_.analysers) {
      std::string where = fmt::format("analyser '{}'", analyser.name.value);
      for (const Text& use : analyser.use) require(use, patterns, "pattern set", where);
      for (const Analyse& analyse : analyser.analyse) {
        require(analyse.step, steps_, "step", where);
        for (const AnalyseFile& file : analyse.files) {
          for (const Text& use : file.use) require(use, patterns, "pattern set", where);
        }
      }
    }
    for (const Result& result : benchmark_.results) {
      check_result(result);
      for (const auto& output : result.outputs)
        std::visit([this](const auto& shown) { check_unique(shown.name); }, output);
    }
  }

 private:
  void require(const Text& name, const std::vector<std::string>& known, const char* what,
               const std::string& where) {
    if (name.value.empty() || has_parameter(name.value) || contains(known, name.value)) return;
    std::string hint = did_you_mean(name.value, known);
    if (hint.empty()) {
      hint = known.empty() ? fmt::format("the benchmark defines no {}", what)
                           : "there are: " + join(known, ", ");
    }
    diagnostics_.error(name.mark, fmt::format("unknown {} '{}' in {}", what, name.value, where),
                       hint);
  }

  void check_step(const Step& step) {
    std::vector<std::string> sets = keys_of(benchmark_.parameter_sets);
    for (const std::string& name : keys_of(benchmark_.file_sets)) sets.push_back(name);
    for (const std::string& name : keys_of(benchmark_.substitute_sets)) sets.push_back(name);
    std::string where = fmt::format("step '{}'", step.name.value);
    for (const Text& use : step.use) require(use, sets, "set", where);
    for (const Text& depend : step.depend) require(depend, steps_, "step", where);
  }

  // Depth first; a step met again while it is open closes a circle.
  void check_cycles() {
    for (const Step& step : benchmark_.steps) {
      if (done_.count(step.name.value) == 0) visit(step);
    }
  }

  void visit(const Step& step) {
    path_.push_back(step.name.value);
    for (const Text& depend : step.depend) {
      auto open = std::find(path_.begin(), path_.end(), depend.value);
      if (open != path_.end()) {
        std::vector<std::string> cycle(open, path_.end());
        cycle.push_back(depend.value);
        diagnostics_.error(
            depend.mark,
            "Cannot resolve dependencies. These steps wait for each other: " + join(cycle, " -> "));
        continue;
      }
      const Step* next = benchmark_.find_step(depend.value);
      if (next && done_.count(depend.value) == 0) visit(*next);
    }
    path_.pop_back();
    done_.insert(step.name.value);
  }

  // Each has its file result/NAME.dat.
  void check_unique(const Text& name) {
    const auto inserted = result_names_.emplace(name.value, name.mark);
    if (inserted.second) return;
    diagnostics_.error(name.mark, fmt::format("result '{}' is defined twice", name.value),
                       "tables, databases and syslogs of a benchmark need names of their own");
    diagnostics_.note(inserted.first->second, "the first one is here");
  }

  void check_result(const Result& result) {
    std::vector<std::string> analysers = names_of(benchmark_.analysers);
    for (const Text& use : result.use) require(use, analysers, "analyser", "result");
    for (const auto& output : result.outputs) {
      if (const auto* table = std::get_if<Table>(&output)) {
        std::string where = fmt::format("table '{}'", table->name.value);
        check_columns(table->columns, where);
        for (const Reference& reference : table->references) {
          require(reference.column, names_of(table->columns), "column", where);
        }
      } else if (const auto* database = std::get_if<Database>(&output)) {
        check_columns(database->keys, fmt::format("database '{}'", database->name.value));
      } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
        check_columns(syslog->keys, fmt::format("syslog '{}'", syslog->name.value));
      }
    }
  }

  // Everything a column may show. Wide rather than narrow: a miss is only a warning.
  std::vector<std::string> column_names() const {
    std::vector<std::string> names = builtin_names();
    names.emplace_back("jube_res_analyser");
    for (const Step& step : benchmark_.steps) {
      names.push_back(fmt::format("jube_wp_parent_{}_id", step.name.value));
    }
    for (const auto& [set_name, set] : benchmark_.parameter_sets) {
      for (const Parameter& p : set.parameters) names.push_back(p.name.value);
    }
    for (const auto& [set_name, set] : benchmark_.pattern_sets) {
      for (const Pattern& p : set.patterns) {
        names.push_back(p.name.value);
        for (const char* suffix :
             {"first", "last", "cnt", "min", "max", "sum", "sum2", "avg", "std"}) {
          names.push_back(p.name.value + "_" + suffix);
        }
      }
    }
    return names;
  }

  void check_columns(const std::vector<Column>& columns, const std::string& where) {
    std::vector<std::string> names = column_names();
    for (const Column& column : columns) {
      const std::string& name = column.name.value;
      if (!column.expression.value.empty() || !column.relative_to.empty()) continue;
      if (name.empty() || has_parameter(name) || contains(names, name)) continue;
      if (is_step_value(name, names)) continue;
      diagnostics_.warning(
          column.name.mark,
          fmt::format("column '{}' of {} is neither a parameter nor a pattern", name, where),
          did_you_mean(name, names));
    }
  }

  // <name>_<step>
  bool is_step_value(const std::string& name, const std::vector<std::string>& names) const {
    return std::any_of(steps_.begin(), steps_.end(), [&](const std::string& step) {
      size_t length = step.size() + 1;
      return name.size() > length && name.compare(name.size() - length, length, "_" + step) == 0 &&
             contains(names, name.substr(0, name.size() - length));
    });
  }

  const Benchmark& benchmark_;
  Diagnostics& diagnostics_;
  std::vector<std::string> steps_;
  std::vector<std::string> path_;
  std::set<std::string> done_;
  std::map<std::string, Mark> result_names_;
};

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
      if (has_parameter(use.value)) return false;
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
      if (known.count(name) > 0 || contains(builtin_names(), name) || is_job_variable(name) ||
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
      if (contains(names_of(set.parameters), name)) {
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

const std::vector<std::string>& builtin_names() {
  static const std::vector<std::string> names = {
      "jube_benchmark_id",   "jube_benchmark_padid",  "jube_benchmark_name",
      "jube_benchmark_home", "jube_benchmark_rundir", "jube_benchmark_start",
      "jube_step_name",      "jube_step_iterations",  "jube_step_cycles",
      "jube_wp_id",          "jube_wp_padid",         "jube_wp_status",
      "jube_wp_iteration",   "jube_wp_cycle",         "jube_wp_relpath",
      "jube_wp_abspath",     "jube_wp_envstr",        "jube_wp_envlist"};
  return names;
}

void check_references(const Benchmark& benchmark, Diagnostics& diagnostics) {
  ReferenceChecker(benchmark, diagnostics).check();
}

void check_dollar_names(const Benchmark& benchmark, const Sources& sources,
                        Diagnostics& diagnostics) {
  DollarChecker(benchmark, sources, diagnostics).check();
}

}  // namespace tally
