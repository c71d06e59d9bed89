#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "engine/base/text.h"
#include "engine/check/name_check.h"
#include "engine/workflow/builtin_names.h"

namespace tally {

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
    while (end < text.size() && is_name_char(text[end])) ++end;
    if (end == start || !is_name_start(text[start])) continue;
    // ${name:-x} and similar forms belong to the shell.
    if (braces && (end == text.size() || text[end] != '}')) continue;
    names.push_back(
        {std::string(text.substr(start, end - start)), std::string(text.substr(i, end - i)), i});
  }
  return names;
}

Mark place_of(const Sources& sources, const Mark& mark, const std::string& written) {
  constexpr uint32_t kLines = 200;
  const bool word = is_name_char(written.front());
  for (uint32_t line = mark.line; mark.known() && line < mark.line + kLines; ++line) {
    const std::string_view text = sources.line({mark.file, line, 1});
    for (size_t at = text.find(written); at != std::string_view::npos;
         at = text.find(written, at + 1)) {
      const size_t end = at + written.size();
      const bool whole = (end >= text.size() || !is_name_char(text[end])) &&
                         (!word || at == 0 || !is_name_char(text[at - 1]));
      uint32_t column = 1;
      for (size_t i = 0; i < at; ++column) {
        i += std::max<size_t>(1, utf8_length(text.substr(i)));
      }
      if (whole && (line > mark.line || column >= mark.column)) return {mark.file, line, column};
    }
  }
  return mark;
}

// Finds `$names` in commands that the workflow does not define.

namespace {

// Collects names to which the commands themselves may give a value: x=..., for x in, read x. It
// collects too many names rather than too few.
void collect_assigned(std::string_view command, std::set<std::string>* names) {
  std::string before;
  for (size_t i = 0; i < command.size();) {
    if (!is_name_start(command[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < command.size() && is_name_char(command[end])) ++end;
    std::string word(command.substr(i, end - i));
    bool assigned =
        end < command.size() && (command[end] == '=' || starts_with(command.substr(end), "+=") ||
                                 starts_with(command.substr(end), ":="));
    if (assigned || before == "for" || before == "read" || before == "select" ||
        before == "-v") {  // printf -v NAME
      names->insert(word);
    }
    // `v=${nn}` assigns v alone.
    if (assigned) {
      before.clear();
    } else if (before != "read") {
      before = i > 0 && command[i - 1] == '-' ? "-" + word : word;
    }
    i = end;
  }
}

// The built-in variables of parents are known where the step has the parent.
bool is_builtin(const std::string& name) {
  const BuiltinName* found = find_builtin(name);
  return found != nullptr && found->id != Builtin::wp_parent_id;
}

// Whether a command may get names from places that cannot be seen here, such as files that it reads
// or modules that it loads.
bool takes_names_from_elsewhere(std::string_view command) {
  for (const char* quoted : {"<<'", "<<\"", "<<\\", "<<-'", "<<-\"", "<< '", "<< \""}) {
    if (command.find(quoted) != std::string_view::npos) return true;
  }
  constexpr std::string_view kEnds = " \t\n;&|()`\"'";
  for (size_t at = 0; at < command.size();) {
    const size_t end = std::min(command.find_first_of(kEnds, at), command.size());
    const std::string_view word = command.substr(at, end - at);
    for (const char* one : {".", "source", "eval", "module", "ml", "conda", "spack", "declare",
                            "typeset", "local", "readonly", "getopts", "mapfile", "readarray"}) {
      if (word == one) return true;
    }
    at = end + 1;
  }
  return false;
}

// Marks the bytes of a command inside single quotes, where the shell expands nothing.
std::vector<bool> single_quoted(std::string_view command) {
  std::vector<bool> quoted(command.size());
  char open = 0;
  for (size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    quoted[i] = open == '\'';
    if (c == '\\' && open != '\'') {
      ++i;
    } else if (open != 0) {
      if (c == open) open = 0;
    } else if (c == '\'' || c == '"') {
      open = c;
    } else if (c == '#' && (i == 0 || command[i - 1] == ' ' || command[i - 1] == '\n')) {
      i = std::min(command.find('\n', i), command.size());  // a comment may contain a single quote
    }
  }
  return quoted;
}

// Variables that every shell defines.
bool is_shell_variable(const std::string& name) {
  static const std::set<std::string> names = {
      "PWD",    "OLDPWD", "HOME",     "UID",      "EUID",   "PPID",   "RANDOM",     "SECONDS",
      "LINENO", "IFS",    "HOSTNAME", "REPLY",    "OPTARG", "OPTIND", "PIPESTATUS", "SHLVL",
      "USER",   "SHELL",  "LOGNAME",  "HOSTTYPE", "OSTYPE", "PS1",    "PS4",        "TMPDIR"};
  return names.count(name) > 0;
}

// Prefixes of the variables of launchers and batch systems. Such variables exist only inside a job.
bool is_job_variable(const std::string& name) {
  for (const char* prefix :
       {"SLURM_", "SLURMD_", "PBS_", "LSB_", "OMPI_", "PMI_", "PMIX_", "CUDA_", "BASH_", "EB"}) {
    if (starts_with(name, prefix)) return true;
  }
  return false;
}

class DollarChecker {
 public:
  DollarChecker(const Benchmark& benchmark, bool strict, const Sources& sources,
                Diagnostics& diagnostics)
      : benchmark_(benchmark), strict_(strict), sources_(sources), diagnostics_(diagnostics) {}

  void check() {
    for (const Step& step : benchmark_.steps) steps_.emplace(step.name.value, &step);
    for (const Step& step : benchmark_.steps) {
      const Reach& reach = reach_of(step);
      if (reach.unclear) continue;
      for (const Operation& op : step.operations) check_text(op.command, step, reach.open);
      check_text(step.launch, step, reach.open);
      for (const Step& one : step.components) check_text(one.launch, step, reach.open);
    }
  }

 private:
  // The names that a step itself defines.
  struct Names {
    std::set<std::string> known;
    bool open = false;     // its commands may know names that cannot be seen here
    bool unclear = false;  // its sets depend on parameters
  };
  // The same of a step and all steps before it. Their names are looked up where they are, because a
  // long chain of steps would make a long list for each.
  struct Reach {
    bool open = false, unclear = false;
  };

  const Step* find_step(const std::string& name) const {
    const auto found = steps_.find(name);
    return found != steps_.end() ? found->second : nullptr;
  }

  const Names& names_of(const Step& step) {
    const auto [entry, added] = names_.try_emplace(&step);
    Names& names = entry->second;
    if (added) collect(step, &names);
    return names;
  }

  void collect(const Step& step, Names* names) const {
    for (const Text& use : step.use) {
      if (has_dollar(use.value)) names->unclear = true;
      auto set = benchmark_.parameter_sets.find(use.value);
      if (set == benchmark_.parameter_sets.end()) continue;
      for (const Parameter& p : set->second.parameters) names->known.insert(p.name.value);
    }
    for (const Operation& op : step.operations) collect_command(op.command.value, names);
    collect_sets(step, names);
    for (const auto& variable : step.env) names->known.insert(variable.first.value);
    if (step.kind != StepKind::plain) {
      const auto& own = step.kinds->value_names();
      names->known.insert(own.begin(), own.end());
    }
    for (const Text& depend : step.depend) {
      names->known.insert(parent_id_name(depend.value));
    }
  }

  // Steps that wait for each other are an error that is reported elsewhere.
  const Reach& reach_of(const Step& step) {
    const auto [entry, added] = reach_.try_emplace(&step);
    Reach& reach = entry->second;
    if (!added) return reach;
    const Names& own = names_of(step);
    bool open = own.open;
    bool unclear = own.unclear;
    for (const Text& depend : step.depend) {
      const Step* parent = find_step(depend.value);
      if (parent == nullptr) continue;
      const Reach& before = reach_of(*parent);
      open = open || before.open;
      unclear = unclear || before.unclear;
    }
    reach.open = open;
    reach.unclear = unclear;
    return reach;
  }

  // Calls `look` for the step and the steps before it, nearest first, until it returns true.
  template <typename Look>
  bool any_before(const Step& step, Look look) {
    std::vector<const Step*> todo{&step};
    std::set<const Step*> seen{&step};
    for (size_t i = 0; i < todo.size(); ++i) {
      if (look(names_of(*todo[i]))) return true;
      for (const Text& depend : todo[i]->depend) {
        const Step* parent = find_step(depend.value);
        if (parent != nullptr && seen.insert(parent).second) todo.push_back(parent);
      }
    }
    return false;
  }

  static void collect_command(const std::string& command, Names* names) {
    collect_assigned(command, &names->known);
    if (takes_names_from_elsewhere(command)) names->open = true;
  }

  // Adds the names that prepare commands export and that a site sets in its jobs.
  void collect_sets(const Step& step, Names* names) const {
    if (!step.modules.empty()) names->open = true;
    for (const Text& use : step.use) {
      if (const auto set = benchmark_.file_sets.find(use.value);
          set != benchmark_.file_sets.end()) {
        for (const auto& entry : set->second.entries) {
          const auto* prepare = std::get_if<Prepare>(&entry);
          if (prepare != nullptr) collect_command(prepare->command.value, names);
        }
      }
      const auto set = benchmark_.parameter_sets.find(use.value);
      if (set == benchmark_.parameter_sets.end()) continue;
      for (const Parameter& p : set->second.parameters) {
        if (!starts_with(p.name.value, "site_") || p.value.value.empty()) continue;
        collect_assigned(p.value.value, &names->known);
        if (p.name.value == "site_modules") names->open = true;
      }
    }
  }

  void check_text(const Text& text, const Step& step, bool open) {
    std::set<std::string> said;
    const std::vector<bool> quoted = single_quoted(text.value);
    for (const DollarName& dollar : dollar_names(text.value)) {
      const std::string& name = dollar.name;
      if (is_builtin(name) || is_job_variable(name) || is_shell_variable(name) ||
          std::getenv(name.c_str()) || !said.insert(name).second ||
          any_before(step, [&](const Names& names) { return names.known.count(name) > 0; })) {
        continue;
      }
      std::set<std::string> known;
      any_before(step, [&](const Names& names) {
        known.insert(names.known.begin(), names.known.end());
        return false;
      });
      std::vector<std::string> candidates(known.begin(), known.end());
      for (std::string& builtin : fixed_builtin_names()) candidates.push_back(std::move(builtin));
      std::string hint = did_you_mean(name, candidates);
      if (hint.empty()) hint = parameter_elsewhere(name);
      if (hint.empty()) hint = did_you_mean(name, parameter_names());
      const Mark place = place_of(sources_, text.mark, dollar.written);
      if (strict_ && !open && !quoted[dollar.at]) {
        if (hint.empty()) hint = fmt::format("write $${} to leave it to the shell", name);
        diagnostics_.error(place,
                           fmt::format("'{}' is not a parameter of step '{}', and the environment "
                                       "has no variable of that name",
                                       name, step.name.value),
                           hint);
      } else {
        diagnostics_.warning(
            place,
            fmt::format("'{}' is not a parameter of step '{}': it must come from the "
                        "shell environment",
                        name, step.name.value),
            hint, {"dollar", name});
      }
    }
  }

  std::vector<std::string> parameter_names() const {
    std::vector<std::string> names;
    for (const Parameter& p : all_parameters(benchmark_)) names.push_back(p.name.value);
    return names;
  }

  std::string parameter_elsewhere(const std::string& name) const {
    for (const auto& [set_name, set] : benchmark_.parameter_sets) {
      const auto named = [&](const Parameter& p) { return p.name.value == name; };
      if (std::ranges::any_of(set.parameters, named)) {
        return fmt::format("parameter set '{}' defines it, but the step does not use that set",
                           set_name);
      }
    }
    return {};
  }

  const Benchmark& benchmark_;
  const bool strict_;  // unknown names are errors
  std::unordered_map<std::string_view, const Step*> steps_;
  std::map<const Step*, Names> names_;
  std::map<const Step*, Reach> reach_;
  const Sources& sources_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_dollar_names(const Benchmark& benchmark, bool strict, const Sources& sources,
                        Diagnostics& diagnostics) {
  DollarChecker(benchmark, strict, sources, diagnostics).check();
}

}  // namespace tally
