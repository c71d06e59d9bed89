#include "steps/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/duration.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "steps/components.h"
#include "steps/container.h"
#include "steps/directives.h"

namespace tally {
namespace {

using Named = std::vector<std::pair<std::string, std::string>>;

void add_text(Named& values, const char* name, const Text& text, const Lookup& lookup) {
  if (!text.value.empty()) values.emplace_back(name, substitute(text.value, lookup));
}

std::string added_or(const Named& values, const Lookup& lookup, std::string_view name) {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  return stripped_value(lookup, name);
}

void add_product(Named& values, const Lookup& lookup, const char* name, const char* first,
                 const char* second) {
  const auto a = whole_number(added_or(values, lookup, first));
  const auto b = whole_number(added_or(values, lookup, second));
  if (a && b) values.emplace_back(name, std::to_string(*a * *b));
}

void set_value(Named& values, const char* name, const std::string& value) {
  for (auto& [key, old] : values) {
    if (key != name) continue;
    old = value;
    return;
  }
  values.emplace_back(name, value);
}

std::string clock_time(long long seconds) {
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// Slurm may send the signal before a time limit up to a minute early. If the job's limit (in
// Slurm's whole minutes) leaves no more time than that, the job would get the signal at its start.
// Such a job gets no signal.
void leave_out_early_signal(Named& values, const Lookup& lookup, long long limit_minutes) {
  const std::string signal = added_or(values, lookup, "signal");
  const size_t at = signal.find('@');
  if (at == std::string::npos) return;
  const auto lead = parse_duration(signal.substr(at + 1));
  if (!lead || static_cast<double>(limit_minutes) * 60 > *lead + 60) return;
  set_value(values, "signal", "");
}

// Adds values that are derived from the step's requests.
void add_derived(const Step& step, Named& values, const Lookup& lookup) {
  const Resources& r = step.resources;
  if (!r.nodes.value.empty() || !r.tasks_per_node.value.empty()) {
    add_product(values, lookup, "tasks", "nodes", "taskspernode");
  }
  if (!r.tasks_per_node.value.empty() || !r.cpus_per_task.value.empty()) {
    add_product(values, lookup, "cpuspernode", "taskspernode", "threadspertask");
  }
  const std::string given = added_or(values, lookup, "timelimit");
  if (const auto limit = parse_duration(given)) {
    const auto seconds = static_cast<long long>(std::ceil(*limit));
    // Schedulers read a plain number as minutes, while here it means seconds, and they do not know
    // 30m. 1:00:00 is rewritten so that all limits look the same.
    const size_t colon = given.find(':');
    if (colon == std::string::npos || colon == 1 || given.find('-') != std::string::npos) {
      set_value(values, "timelimit", clock_time(seconds));
    }
    // These forms are for schedulers that do not read Slurm's forms.
    values.emplace_back("timelimit_seconds", std::to_string(seconds));
    const long long minutes = (seconds + 59) / 60;
    values.emplace_back("timelimit_minutes", std::to_string(minutes));
    // A table's scheduler sends it when it is told to.
    if (!step.scheduler) leave_out_early_signal(values, lookup, minutes);
  }
}

// Names mean what they mean in the step's own texts: an added value hides the parameter, unless it
// is the user's.
Lookup with_added(const Named& values, const Lookup& lookup) {
  return [&values, lookup](std::string_view name) -> const std::string* {
    const std::string_view bare = without_platform_prefix(name);
    for (const auto& [key, value] : values) {
      if (key == bare || (key == name && !is_users(lookup, name))) return &value;
    }
    return lookup(name);
  };
}

// The same for the platform's texts: its own names come first.
Lookup of_platform(const Named& values, const Lookup& lookup) {
  return [both = with_added(values, lookup)](std::string_view name) {
    const std::string* found = job_value(both, name);
    return found != nullptr ? found : both(name);
  };
}

// A site's launcher may refer to values of a step, as in `mpirun -n $tasks`. They are known only
// here, after the values of `resources`.
void add_starter(Named& values, const Lookup& lookup) {
  const std::string starter = stripped_value(lookup, "starter");
  if (!has_dollar_name(starter)) return;
  const std::string text = substitute(starter, of_platform(values, lookup));
  values.emplace_back("starter", text);
}

// The command that sets variables. It is a single one, so that no variable sees another's new
// value.
std::string export_command(const Named& variables, const Lookup& lookup) {
  std::string command;
  for (const auto& [name, text] : variables) {
    command +=
        fmt::format("{} {}={}", command.empty() ? "export" : " \\\n ", substitute(name, lookup),
                    variables_for_shell(substitute_parameters(text, lookup)));
  }
  return command;
}

// The command that sets exported parameters, to the text that they have: a script that somebody
// submits by hand gets them from nowhere else.
std::string export_of_parameters(const Lookup& parameters) {
  Named variables;
  for (const std::string& name : exported_names(parameters)) {
    std::string text;
    if (const std::string* value = parameters(name)) {
      for (const char c : *value) text += c == '$' ? "$$" : std::string(1, c);
    }
    variables.emplace_back(name, text);
  }
  return export_command(variables, [](std::string_view) -> const std::string* { return nullptr; });
}

// The platform's lines that set exported parameters. In a job script of a run step, $jube_wp_envstr
// is the command above. As a value it is JUBE's text, in which a shell expands variables, and a
// child step inherits the value from its parent.
std::string exports_of_platform(const Step& step, const Lookup& lookup, const Lookup& written) {
  const std::string* text = step.kind == StepKind::run && written ? written("env") : nullptr;
  if (text == nullptr) return stripped_value(lookup, "env");
  const std::string exports = export_of_parameters(lookup) + "\n";
  const std::string lines = substitute(*text, [&](std::string_view name) -> const std::string* {
    if (name == "jube_wp_envstr") return &exports;
    const std::string* found = job_value(lookup, name);
    return found != nullptr ? found : lookup(name);
  });
  return std::string(strip(lines));
}

// Adds the lines that set the variables of the platform and of the step, the platform's first.
void add_environment(const Step& step, Named& values, const Lookup& lookup, const Lookup& written) {
  const Lookup both = with_added(values, lookup);
  const Lookup platforms = of_platform(values, lookup);
  Named lines;
  for (const auto& [packed, name] : {std::pair{"site_interconnect_variables", "site_interconnect"},
                                     {"site_variables", "site_env"}}) {
    const std::string command =
        export_command(unpack_variables(stripped_value(lookup, packed)), platforms);
    if (!command.empty()) lines.emplace_back(name, command);
  }
  std::string own;
  for (const Text& name : step.env_unset)
    own += fmt::format("unset {}\n", substitute(name.value, both));
  Named variables;
  for (const auto& [name, text] : step.env) variables.emplace_back(name.value, text.value);
  own += export_command(variables, both);
  if (!own.empty() && own.back() == '\n') own.pop_back();
  std::string exported = exports_of_platform(step, lookup, written);
  if (!exported.empty() && !own.empty()) exported += "\n";
  exported += own;
  const bool is_run = step.kind == StepKind::run;
  if (!own.empty() || (is_run && !exported.empty())) lines.emplace_back("env", exported);
  values.insert(values.end(), lines.begin(), lines.end());
}

// Workpackages may share a work_dir. A job's files are therefore in the workpackage's own folder,
// because its script and its end belong to one workpackage.
void add_job_files(const Step& step, Named& values, const Lookup& lookup) {
  if (step.work_dir.value.empty()) return;
  const std::string run = stripped_value(lookup, "jube_benchmark_rundir");
  if (run.empty()) return;
  if (job_value(lookup, "job_functions") != nullptr) {
    set_value(values, "job_functions", run + "/job_functions.sh");
  }
  if (step_kinds().platform_of(step, lookup).local()) return;
  for (const char* name : {"submit_script", "stdoutlogfile", "stderrlogfile", "status_file",
                           "done_file", "error_file", "reason_file"}) {
    const std::string file = stripped_value(lookup, name);
    if (file.empty() || file.front() == '/') continue;
    set_value(values, name, own_folder(step, lookup) + "/" + file);
  }
}

// The length of a variable's name at the begin of a text. 0: there is none.
size_t name_length(std::string_view text) {
  size_t end = 0;
  while (end < text.size() &&
         (isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
    ++end;
  return end > 0 && isdigit(static_cast<unsigned char>(text[0])) == 0 ? end : 0;
}

// A folder's name as a word of the shell: with blanks, with variables, each of which the job must
// have (":?" ends it), and with ~ at its begin. An empty name stays empty. A text in braces, as
// ${NAME:-other}, stays as it is.
std::string word_of_folder(std::string_view text) {
  if (text.empty()) return {};
  std::string word = "\"";
  if (text == "~" || text.substr(0, 2) == "~/") {
    word += "${HOME:?}";
    text.remove_prefix(1);
  }
  int braces = 0;
  while (!text.empty()) {
    const bool opens = text.substr(0, 2) == "${";
    const size_t name = text[0] == '$' ? name_length(text.substr(opens ? 2 : 1)) : 0;
    const bool plain = name > 0 && (!opens || text.substr(2 + name, 1) == "}");
    if (plain && braces == 0) {
      word += "${" + std::string(text.substr(opens ? 2 : 1, name)) + ":?}";
      text.remove_prefix(opens ? name + 3 : name + 1);
      continue;
    }
    const char c = text[0];
    if (opens) ++braces;
    if (c == '}' && braces > 0) --braces;
    if (c == '"' || c == '\\' || c == '`') word += '\\';
    word += c;
    text.remove_prefix(1);
  }
  return word + "\"";
}

// Adds lines of a job script that name files or depend on other lines.
void add_job_lines(Named& values, const Lookup& lookup) {
  if (job_value(lookup, "job_functions") == nullptr) return;
  std::string line = ".";
  for (const char* name :
       {"job_functions", "status_file", "done_file", "error_file", "reason_file"}) {
    line += " " + shell_quote(added_or(values, lookup, name));
  }
  values.emplace_back("job_begin", line + " || exit");
  for (const auto& [name, folder] :
       {std::pair{"tmp_word", "site_tmp"}, {"cache_word", "site_cache"}})
    values.emplace_back(name, word_of_folder(added_or(values, lookup, folder)));
  const bool modules = !added_or(values, lookup, "modules").empty() ||
                       !stripped_value(lookup, "site_modules").empty();
  values.emplace_back("modules_begin", modules ? "trap job_module_failed ERR" : "");
  values.emplace_back("modules_end", modules ? "trap - ERR" : "");
}

}  // namespace

std::string own_folder(const Step& step, const Lookup& lookup) {
  std::string folder = stripped_value(lookup, "jube_benchmark_rundir") + "/" +
                       stripped_value(lookup, "jube_wp_padid") + "_" + step.name.value;
  const std::string suffix = substitute(step.suffix.value, lookup);
  if (!suffix.empty()) folder += "_" + suffix;
  return folder + "/work";
}

std::vector<std::string> exported_names(const Lookup& lookup) {
  std::vector<std::string> names = split_strip(stripped_value(lookup, "jube_wp_envlist"), ",");
  std::erase(names, "");
  return names;
}

NamedValues TallyKinds::values(const Step& step, const Lookup& lookup,
                               const Lookup& written) const {
  Named values;
  for (const ResourceKey& one : resource_keys())
    add_text(values, one.parameter, step.resources.*one.text, lookup);
  if (step.kind == StepKind::run) {
    add_derived(step, values, lookup);
    add_total_nodes(step, values, lookup);
  }
  add_starter(values, lookup);
  if (step.kind == StepKind::run) {
    add_text(values, "launch", step.launch, with_added(values, lookup));
    values.emplace_back("container", container_command(step, with_added(values, lookup)));
  }
  if (step.kind == StepKind::run || !step.modules.empty()) {
    std::string modules;
    for (const Text& module : step.modules) {
      const std::string name = substitute(module.value, lookup);
      if (!strip(name).empty()) modules += " " + name;
    }
    if (!modules.empty()) {
      values.emplace_back("modules", "module load" + modules);
    } else if (job_value(lookup, "modules") == nullptr) {
      values.emplace_back("modules", "");
    }
  }
  add_environment(step, values, lookup, written);
  add_job_files(step, values, lookup);
  add_directives(step, values, lookup);
  add_job_lines(values, lookup);
  add_launch_line(step, values, lookup, written);
  return values;
}

const std::vector<std::string_view>& TallyKinds::value_names() const {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> list = {
        // of `resources`, and what follows from them
        "nodes", "taskspernode", "threadspertask", "gpuspernode", "timelimit", "queue", "account",
        "memory", "tasks", "totalnodes", "cpuspernode", "timelimit_seconds", "timelimit_minutes",
        "signal", "site_hint",
        // of other keys
        "starter", "scheduler_options", "site_options", "launch", "container", "modules", "env",
        "site_interconnect", "site_env",
        // of the job's files and lines
        "job_functions", "submit_script", "stdoutlogfile", "stderrlogfile", "status_file",
        "done_file", "error_file", "reason_file", "job_begin", "modules_begin", "modules_end",
        "launch_line", "tmp_word", "cache_word",
        // of the directives of its job script
        "job_name_word", "queue_word", "account_word", "memory_word", "gpus_word", "hint_word",
        "signal_word", "stdout_word", "stderr_word", "stdout_path", "stderr_path",
        // of the head of a script for a scheduler that a table describes
        "directives", "script_begin", "job_variables", "job_early"};
    std::ranges::sort(list);
    return list;
  }();
  return names;
}

Platform TallyKinds::platform_of(const Step& step, const Lookup& lookup) const {
  Platform platform;
  if (step.kind != StepKind::run || step.launch.value.empty()) return platform;
  const std::string scheduler = stripped_value(lookup, "scheduler");
  if (!scheduler.empty()) platform.scheduler = scheduler;
  platform.submit = stripped_value(lookup, "submit");
  platform.submit_script = stripped_value(lookup, "submit_script");
  return platform;
}

LocalLaunch TallyKinds::local_launch(const Step& step, const Lookup& lookup) const {
  if (step.kind != StepKind::run || step.launch.value.empty()) return {};
  if (!platform_of(step, lookup).local()) return {};
  // `lookup` includes the values of values(). The step's own variables are in its environment.
  // After lines of its platform they are set again, since they take precedence and may refer to
  // what these set.
  std::string command;
  bool sets_env = false;
  // Without one of its modules the program would measure something else.
  for (const char* name : {"site_modules", "modules"}) {
    const std::string lines = stripped_value(lookup, name);
    if (!lines.empty()) command += "set -e\n" + lines + "\nset +e\n";
  }
  for (const char* name : {"site_interconnect", "site_env"}) {
    const std::string lines = stripped_value(lookup, name);
    if (!lines.empty()) command += lines + "\n";
  }
  if (const std::string own = stripped_value(lookup, "env"); !command.empty() && !own.empty()) {
    command += own + "\n";
    sets_env = true;
  }
  for (const char* name : {"starter", "site_mpi", "args_starter"}) {
    const std::string word = stripped_value(lookup, name);
    if (!word.empty()) command += word + " ";
  }
  if (const std::string inside = container_command(step, lookup); !inside.empty()) {
    command += inside + " ";
  }
  return {command + std::string(strip(substitute(step.launch.value, lookup))), sets_env};
}

std::string TallyKinds::outcome_of(int exit_code) const {
  switch (exit_code) {
    case 3:
      return "oom";
    case 4:
      return "timeout";
    case 5:
      return "check";
    default:
      return {};
  }
}

bool TallyKinds::is_expected(const Step& step, const std::string& outcome,
                             const Lookup& lookup) const {
  if (outcome.empty()) return false;
  for (const Text& expected : step.expect) {
    for (const std::string& name : split_strip(substitute(expected.value, lookup), ",")) {
      if (name == outcome) return true;
    }
  }
  return false;
}

const TallyKinds& step_kinds() {
  static const TallyKinds kinds;
  return kinds;
}

}  // namespace tally
