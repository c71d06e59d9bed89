#include "steps/directives.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/job_options.h"
#include "engine/workflow/scheduler_table.h"
#include "steps/kinds.h"

namespace tally {
namespace {

bool has_option(const NamedValues& options, const std::string& name) {
  return std::ranges::any_of(options, [&](const auto& option) { return option.first == name; });
}

// Removes the option from the list and returns its value.
std::string take_option(NamedValues& options, const std::string& name) {
  std::string value;
  std::erase_if(options, [&](const auto& option) {
    if (option.first != name) return false;
    value = option.second;
    return true;
  });
  return value;
}

// A path in which Slurm replaces nothing. It reads % as the beginning of a pattern, unless there is
// a backslash, which it removes.
std::string without_patterns(const std::string& path) {
  const bool backslash = path.find('\\') != std::string::npos;
  std::string text;
  for (const char c : path) {
    if (c == (backslash ? '\\' : '%')) text += c;
    text += c;
  }
  return text;
}

// The file of a job's output. Only its name may be a pattern.
std::string output_name(const Step& step, const std::string& file, const Lookup& lookup) {
  if (file.empty()) return file;
  if (file.front() != '/') return output_directive(own_folder(step, lookup), file);
  if (step.work_dir.value.empty()) return file;  // as the platform gives it
  const size_t name = file.rfind('/');
  return without_patterns(file.substr(0, name)) + file.substr(name);
}

// The signal as Slurm sends it to the job's script, which tells the program. Without `B:` the program
// alone would get it, and nobody would know that the time limit is near.
std::string to_script(const std::string& signal) {
  const size_t colon = signal.find(':');
  if (signal.empty()) return signal;
  if (colon == std::string::npos) return "B:" + signal;
  return signal.find_first_of("Bb") < colon ? signal : "B" + signal;
}

// For a script that opens them itself.
void add_output_paths(NamedValues& values, const Lookup& lookup) {
  values.emplace_back("stdout_path", shell_quote(value_in(values, lookup, "stdoutlogfile")));
  values.emplace_back("stderr_path", shell_quote(value_in(values, lookup, "stderrlogfile")));
}

}  // namespace

std::string value_in(const NamedValues& values, const Lookup& lookup, std::string_view name) {
  for (const auto& [key, value] : values) {
    if (key == name) return std::string(strip(value));
  }
  return stripped_value(lookup, name);
}

NamedValues platform_options(const Lookup& lookup) {
  constexpr size_t most = 1000;
  NamedValues options;
  while (options.size() < most) {
    const std::string* found = job_value(lookup, fmt::format("site_option_{}", options.size() + 1));
    if (found == nullptr) break;
    const size_t sign = std::min(found->find('='), found->size());
    options.emplace_back(found->substr(0, sign),
                         sign < found->size() ? found->substr(sign + 1) : std::string());
  }
  return options;
}

NamedValues step_options(const Step& step, const Lookup& lookup) {
  NamedValues options;
  for (const auto& [name, text] : step.resources.extra)
    options.emplace_back(substitute(name.value, lookup), substitute(text.value, lookup));
  return options;
}

void add_directives(const Step& step, NamedValues& values, const Lookup& lookup) {
  const std::string scheduler = value_in(values, lookup, "scheduler");
  const std::string form = value_in(values, lookup, "option_line");
  NamedValues site = platform_options(lookup);
  NamedValues own = step_options(step, lookup);
  // The step's value of an option replaces its platform's, also where it is false.
  std::erase_if(site, [&](const auto& option) {
    const bool more = step.scheduler && adds_up(*step.scheduler, option.first);
    return !more && has_option(own, option.first);
  });
  if (step.scheduler) {
    std::string value;  // the last that was asked for
    const NamedValues given = values;
    const Lookup both = [&](std::string_view name) {
      value = value_in(given, lookup, name);
      return &value;
    };
    add_table_directives(step, {site, own}, values, both);
    add_output_paths(values, lookup);
    return;
  }
  std::string gpus = value_in(values, lookup, "gpuspernode");
  if (scheduler == "slurm" && !gpus.empty() && gpus != "0") {
    // Slurm takes the last one of several --gres.
    for (NamedValues* options : {&site, &own}) {
      const std::string more(strip(take_option(*options, "gres")));
      if (!more.empty()) gpus += "," + more;
    }
  }
  if (!site.empty() || job_value(lookup, "site_option_1") != nullptr)
    values.emplace_back("site_options", option_lines(scheduler, form, site));
  if (step.kind == StepKind::run)
    values.emplace_back("scheduler_options", option_lines(scheduler, form, own));
  if (job_value(lookup, "job_functions") == nullptr) return;
  const auto add = [&](const char* name, const std::string& text) {
    values.emplace_back(name, directive_word(scheduler, text));
  };
  values.emplace_back("job_name_word",
                      directive_word(scheduler, value_in(values, lookup, "jube_benchmark_name") +
                                                    "." + step.name.value));
  add("queue_word", value_in(values, lookup, "queue"));
  add("account_word", value_in(values, lookup, "account"));
  add("memory_word", value_in(values, lookup, "memory"));
  add("gpus_word", gpus);
  add("hint_word", value_in(values, lookup, "site_hint"));
  const std::string signal = value_in(values, lookup, "signal");
  add("signal_word", scheduler == "slurm" ? to_script(signal) : signal);
  const std::string out = value_in(values, lookup, "stdoutlogfile");
  const std::string err = value_in(values, lookup, "stderrlogfile");
  add("stdout_word", output_name(step, out, lookup));
  add("stderr_word", output_name(step, err, lookup));
}

// Slurm looks for patterns in the folder of the job, too.
std::string output_directive(const std::string& folder, const std::string& name) {
  if (folder.find_first_of("%\\") == std::string::npos) return name;
  return without_patterns(folder) + "/" + name;
}

std::string output_file(const std::string& directive) {
  const std::string path = read_directive_word(directive);
  const char escaped = path.find('\\') != std::string::npos ? '\\' : '%';
  std::string file;
  for (size_t i = 0; i < path.size(); ++i) {
    file += path[i];
    if (path[i] != escaped) continue;
    if (i + 1 == path.size() || path[i + 1] != escaped) return {};
    ++i;
  }
  return file;
}

}  // namespace tally
