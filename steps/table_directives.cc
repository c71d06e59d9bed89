// The head of a job script for a scheduler that a table describes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/scheduler_table.h"
#include "steps/directives.h"

namespace tally {
namespace {

using Values = std::map<std::string, std::string>;

long long number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 10);
}

// `signal` as WHOM:NAME@SECONDS. Without a time limit there is no time before it, and of a short one
// it is a quarter.
void add_signal(const std::string& signal, Values* values) {
  const size_t at = signal.find('@');
  const long long limit = number((*values)["time_seconds"]);
  const long long lead =
      at == std::string::npos ? 0 : std::min(number(signal.substr(at + 1)), limit / 4);
  if (lead <= 0) return;
  const size_t colon = std::min(signal.find(':'), at);
  (*values)["signal"] =
      signal.substr(colon == at ? 0 : colon + 1, at - (colon == at ? 0 : colon + 1));
  (*values)["signal_minutes"] = std::to_string((lead + 59) / 60);
  (*values)["signal_seconds"] = std::to_string(lead);
  (*values)["soft_seconds"] = std::to_string(limit - lead);
}

// Values that directives may name, as directive_values() lists them.
Values directive_values_of(const SchedulerTable& table, const Lookup& value) {
  Values values;
  const auto text = [&](std::string_view name) {
    const std::string* found = value(name);
    return found == nullptr ? std::string() : std::string(strip(*found));
  };
  for (const auto& [name, parameter] : {std::pair{"nodes", "nodes"},
                                        {"tasks", "tasks"},
                                        {"tasks_per_node", "taskspernode"},
                                        {"cpus_per_task", "threadspertask"},
                                        {"time", "timelimit"},
                                        {"time_seconds", "timelimit_seconds"},
                                        {"time_minutes", "timelimit_minutes"}})
    values[name] = text(parameter);
  for (const auto& [name, parameter] : {std::pair{"partition", "queue"},
                                        {"account", "account"},
                                        {"hint", "site_hint"},
                                        {"stdout", "stdoutlogfile"},
                                        {"stderr", "stderrlogfile"}})
    values[name] = directive_word(table, text(parameter));
  const long long cpus = number(values["tasks_per_node"]) * number(values["cpus_per_task"]);
  const long long slots = number(values["nodes"]) * cpus;
  values["cpus_per_node"] = std::to_string(cpus);
  if (slots > 1) values["slots"] = std::to_string(slots);
  if (text("gpuspernode") != "0") values["gpus"] = text("gpuspernode");
  const long long tasks = number(values["tasks_per_node"]), gpus = number(text("gpuspernode"));
  if (gpus > 0 && tasks > 0 && gpus % tasks == 0)
    values["gpus_per_task"] = std::to_string(gpus / tasks);
  values["memory"] = memory_word(table, text("memory"));
  add_signal(text("signal"), &values);
  return values;
}

// The longest time before the limit at which the scheduler sends its signal, by the value that says
// when in the table's directives. Empty: none says it.
std::string early_seconds(const SchedulerTable& table, Values& values) {
  constexpr long long minute = 60, late = 10;
  for (const std::string& line : table.directives.lines) {
    const bool in_seconds = line.find("$soft_seconds") != std::string::npos ||
                            line.find("$signal_seconds") != std::string::npos;
    if (in_seconds && !values["soft_seconds"].empty())
      return std::to_string(number(values["time_seconds"]) - number(values["soft_seconds"]) + late);
    if (line.find("$signal_minutes") != std::string::npos && !values["signal_minutes"].empty())
      return std::to_string((number(values["signal_minutes"]) + 1) * minute);
  }
  return {};
}

// The scheduler's names for the job, under those that job_functions.sh knows.
std::string job_variables(const SchedulerTable& table) {
  std::string line = fmt::format("job_id=${{{}-}}", table.job_id);
  if (!table.job_name.empty()) line += fmt::format(" job_name=${{{}-}}", table.job_name);
  if (!table.job_restarts.empty())
    line += fmt::format(" job_restarts=${{{}:-0}}", table.job_restarts);
  return line;
}

}  // namespace

void add_table_directives(const Step& step, const JobOptions& options, NamedValues& values,
                          const Lookup& lookup) {
  const SchedulerTable& table = *step.scheduler;
  Values texts = directive_values_of(table, lookup);
  const std::string* benchmark = lookup("jube_benchmark_name");
  texts["name"] = job_name_word(
      table, (benchmark == nullptr ? std::string() : *benchmark) + "." + step.name.value);
  NamedValues all = options.site;
  all.insert(all.end(), options.own.begin(), options.own.end());
  values.emplace_back("directives", directive_lines(table, texts, all));
  values.emplace_back("site_options", option_lines(table, options.site));
  values.emplace_back("scheduler_options", option_lines(table, options.own));
  values.emplace_back("script_begin", join(table.script, "\n"));
  values.emplace_back("job_variables", job_variables(table));
  values.emplace_back("job_early", early_seconds(table, texts));
  // One task needs nothing that starts several.
  std::string launcher = table.launcher;
  replace_all(launcher, "$tasks", texts["tasks"]);
  for (auto& [name, text] : values) {
    if (name == "starter" && texts["tasks"] == "1" && text == launcher) text.clear();
  }
}

}  // namespace tally
