#include "steps/components.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/job_options.h"
#include "engine/workflow/scheduler_table.h"
#include "steps/directives.h"
#include "steps/kinds.h"

namespace tally {
namespace {

// `starter`: the platform's. `group`: srun's options of one component. `before`: words before the
// program.
std::string launch_words(const NamedValues& values, const Lookup& lookup,
                         const std::string& starter, const std::string& group = {},
                         const std::string& before = {}) {
  std::string line;
  const auto add = [&](const std::string& words) {
    if (!words.empty()) line += (line.empty() ? "" : " ") + words;
  };
  add(starter);
  for (const char* name : {"site_mpi", "args_starter"}) add(value_in(values, lookup, name));
  add(group);
  add(value_in(values, lookup, "container"));
  add(before);
  add(value_in(values, lookup, "launch"));
  return line;
}

// The requests of a component, as the head of the job script says it of the first one.
std::string component_lines(const NamedValues& values, const Lookup& lookup) {
  const std::string form = value_in(values, lookup, "option_line");
  std::string lines = "#SBATCH hetjob";
  for (const auto& [option, name] : {std::pair{"nodes", "nodes"},
                                     {"ntasks-per-node", "taskspernode"},
                                     {"cpus-per-task", "threadspertask"},
                                     {"gres", "gpus_word"},
                                     {"mem", "memory_word"},
                                     {"time", "timelimit"},
                                     {"partition", "queue_word"},
                                     {"account", "account_word"},
                                     {"hint", "hint_word"}}) {
    std::string value = value_in(values, lookup, name);
    const bool gpus = std::string_view(name) == "gpus_word";
    if (value.empty() || (gpus && value == "0")) continue;
    if (gpus) value.insert(0, "gpu:");
    lines += "\n" + option_line(form, option, value);
  }
  for (const char* name : {"site_options", "scheduler_options"}) {
    const std::string more = value_in(values, lookup, name);
    if (!more.empty()) lines += "\n" + more;
  }
  return lines;
}

bool sets_threads(const Step& step, const Lookup& lookup) {
  constexpr std::string_view threads = "OMP_NUM_THREADS";
  for (const auto& [name, text] : step.env)
    if (name.value == threads) return true;
  for (const auto& [name, text] : unpack_variables(stripped_value(lookup, "site_variables")))
    if (name == threads) return true;
  return contains(exported_names(lookup), threads);
}

void put(NamedValues& values, const std::string& name, const std::string& value) {
  const auto same =
      std::ranges::find_if(values, [&](const auto& entry) { return entry.first == name; });
  if (same != values.end()) {
    same->second = value;
  } else {
    values.emplace_back(name, value);
  }
}

void add_components(const Step& step, NamedValues& values, const Lookup& lookup,
                    const Lookup& written) {
  const std::string threads = value_in(values, lookup, "threadspertask");
  const bool own_threads = sets_threads(step, lookup);
  const std::string total = value_in(values, lookup, "totalnodes");
  const Lookup beside = [&](std::string_view name) -> const std::string* {
    const bool plain = name == "totalnodes" && !is_users(lookup, name);
    return plain || without_platform_prefix(name) == "totalnodes" ? &total : lookup(name);
  };
  std::string options = value_in(values, lookup, "scheduler_options");
  const std::string starter = value_in(values, lookup, "starter");
  const std::string its_options(strip(starter.substr(std::min(starter.find(' '), starter.size()))));
  std::string line = launch_words(values, lookup, starter, "--het-group=0");
  for (size_t i = 0; i < step.components.size(); ++i) {
    const NamedValues of = step.kinds->values(step.components[i], beside, written);
    options += (options.empty() ? "" : "\n") + component_lines(of, lookup);
    const std::string cpus = value_in(of, lookup, "threadspertask");
    line +=
        " : " + launch_words(of, lookup, its_options,
                             fmt::format("--het-group={} --cpus-per-task={}", i + 1, cpus),
                             cpus == threads || own_threads ? "" : "env OMP_NUM_THREADS=" + cpus);
  }
  put(values, "scheduler_options", options);
  put(values, "launch_line", line);
}

// Whether the shell would end the line of srun there, or srun take a word for its own.
bool is_more_than_a_program(std::string_view text) {
  char quote = '\0', before = ' ';
  for (size_t i = 0; i < text.size(); before = text[i++]) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : ' ';
    if (c == '\\' && quote != '\'') {
      ++i;
    } else if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'' || c == '`') {
      quote = c;
    } else if (c == '$' && next == '(') {
      for (int depth = 0; ++i < text.size();) {
        depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
        if (depth == 0) break;
      }
      if (i >= text.size()) return true;
    } else if (c == '&' && (before == '>' || before == '<' || next == '>')) {
      continue;  // 2>&1
    } else if (std::string_view(";|&()\n").find(c) != std::string_view::npos) {
      return true;
    } else if (c == ':' && before == ' ' && next == ' ') {
      return true;
    }
  }
  return false;
}

}  // namespace

void add_total_nodes(const Step& step, NamedValues& values, const Lookup& lookup) {
  if (step.components.empty()) return;
  std::optional<long long> nodes = whole_number(value_in(values, lookup, "nodes"));
  for (const Step& component : step.components) {
    const std::string& own = component.resources.nodes.value;
    const std::optional<long long> more =
        whole_number(own.empty() ? value_in({}, lookup, "nodes") : substitute(own, lookup));
    nodes = nodes && more ? std::optional(*nodes + *more) : std::nullopt;
  }
  put(values, "totalnodes", nodes ? std::to_string(*nodes) : std::string());
}

void add_launch_line(const Step& step, NamedValues& values, const Lookup& lookup,
                     const Lookup& written) {
  if (job_value(lookup, "job_functions") == nullptr) return;
  if (step.components.empty()) {
    values.emplace_back("launch_line",
                        launch_words(values, lookup, value_in(values, lookup, "starter")));
  } else {
    add_components(step, values, lookup, written);
  }
}

Lookup beside_first(const Step& step, const Step& component, const Lookup& lookup) {
  return [&step, &component, lookup](std::string_view name) -> const std::string* {
    const std::string_view bare = without_platform_prefix(name);
    for (const ResourceKey& one : resource_keys()) {
      const bool given = !(step.resources.*one.text).value.empty();
      if (bare == one.parameter && given && (component.resources.*one.text).value.empty())
        return &no_platform_value();
    }
    return lookup(name);
  };
}

std::vector<JobFault> component_faults(const Step& step, const Lookup& lookup) {
  std::vector<JobFault> faults;
  if (step.components.empty()) return faults;
  const auto add = [&](const Mark& mark, std::string message, std::string hint) {
    faults.push_back(
        {mark, "", fmt::format("step '{}': {}", step.name.value, message), std::move(hint)});
  };
  const Mark& second = step.components.front().name.mark;
  const std::string scheduler = stripped_value(lookup, "scheduler");
  // The platform may be known later.
  const bool open = has_dollar_name(scheduler) || (scheduler.empty() && !step.platform.empty() &&
                                                   job_value(lookup, "scheduler") == nullptr);
  if (open) return faults;
  if (scheduler != "slurm") {
    const std::string title = step.scheduler ? step.scheduler->title : scheduler;
    add(second,
        fmt::format("a job of several components needs Slurm, and {}",
                    title.empty() || title == "local" ? "it runs on this machine"
                                                      : "its scheduler is " + title),
        "give each component a tag, or each program a step of its own");
    return faults;
  }
  const std::string starter = stripped_value(lookup, "starter");
  const std::string word = starter.substr(0, starter.find(' '));
  if (word.substr(word.rfind('/') + 1) != "srun") {
    add(second,
        fmt::format("the programs of several components are started by srun, and its "
                    "platform's launcher is '{}'",
                    starter),
        "leave `launcher` of the platform out");
  } else if (job_value(lookup, "job_functions") == nullptr) {
    add(second, "its platform's job script starts no components",
        "sets that start from those of slurm/platform.yaml do");
  }
  for (const Text* launch : [&] {
         std::vector<const Text*> all{&step.launch};
         for (const Step& one : step.components) all.push_back(&one.launch);
         return all;
       }()) {
    if (!is_more_than_a_program(substitute(launch->value, lookup))) continue;
    add(launch->mark, "a component launches one program, and this is more for the shell",
        "put it into quotes: bash -c '...'");
    faults.back().constant = !has_dollar(launch->value);
  }
  return faults;
}

}  // namespace tally
