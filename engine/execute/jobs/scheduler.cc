#include "engine/execute/jobs/scheduler.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/journal/journal.h"
#include "engine/read/scheduler_file.h"
#include "engine/workspace/external_command.h"

namespace tally {

Refusal refusal_of_end(const CommandResult& result, bool has_id) {
  // A shell's exit code for a signal. The commands of PBS end with codes of their own from 152 on.
  constexpr int kShellSignal = 128, kLastSignal = SIGTERM;
  const int signal = result.signal != 0 ? result.signal : result.status - kShellSignal;
  const bool silent = strip(result.err).empty() && (strip(result.out).empty() || has_id);
  if (result.started && result.status >= 0 && silent) return Refusal::transient;
  if (signal > 0 && signal <= kLastSignal) return Refusal::transient;
  return result.started ? Refusal::failed : Refusal::rejected;
}

CommandResult ask_scheduler(std::vector<std::string> words,
                            const std::vector<std::string>& environment,
                            const std::atomic<bool>* given_up) {
  ExternalCommand spec;
  spec.words = std::move(words);
  spec.environment = environment;
  spec.given_up = given_up;
  return run_external(spec);
}

std::vector<QueueFacts> queues_of_lines(const std::string& text) {
  std::vector<QueueFacts> queues;
  for (const std::string& line : split_strip(text, "\n")) {
    std::vector<std::string> f = split_strip(line, "|");
    if (line.empty() || f.size() != 7) continue;
    for (std::string& field : f) {
      if (field == "(null)") field.clear();
    }
    const bool is_default = !f[0].empty() && f[0].back() == '*';
    if (is_default) f[0].pop_back();
    queues.push_back({f[0], f[1], f[2], f[3], f[4], f[5], f[6], is_default});
  }
  return queues;
}

std::string queue_text(const QueueFacts& queue) {
  std::string text = queue.name + (queue.is_default ? "*" : "");
  std::string node = queue.cpus.empty() ? "" : queue.cpus + " CPUs";
  if (!queue.memory.empty()) {
    const bool number = queue.memory.find_first_not_of("0123456789") == std::string::npos;
    node += (node.empty() ? "" : " and ") + queue.memory + (number ? " MB" : "");
  }
  std::vector<std::string> parts;
  if (!queue.nodes.empty())
    parts.push_back(queue.nodes + " node" + (queue.nodes == "1" ? "" : "s") +
                    (node.empty() ? "" : " of " + node));
  if (!queue.resources.empty()) parts.push_back(queue.resources);
  if (!queue.limit.empty()) parts.push_back("limit " + queue.limit);
  if (!queue.state.empty() && queue.state != "up") parts.push_back(queue.state);
  return parts.empty() ? text : text + ": " + join(parts, ", ");
}

std::vector<SchedulerHere> schedulers_here(const std::vector<std::string>& template_folders,
                                           Status* problem) {
  std::vector<SchedulerHere> here;
  if (!find_program({"sbatch"}).empty()) here.push_back({"slurm", make_slurm()});
  std::set<std::string> seen;
  for (const std::string& folder : template_folders) {
    std::error_code error;
    std::set<std::string> paths;
    for (std::filesystem::directory_iterator entry(folder + "/" + scheduler_folder, error), end;
         !error && entry != end; entry.increment(error))
      paths.insert(entry->path().string());
    for (const std::string& path : paths) {
      const std::string name = table_of_file(path);
      if (name.empty() || !seen.insert(name).second) continue;
      std::string text;
      Sources sources;
      Diagnostics diagnostics;
      if (const Status read = read_file(path, &text); !read) {
        *problem = read;
        continue;
      }
      const auto table = read_scheduler_table(path, sources.add(path, text), text, diagnostics);
      if (!table) *problem = Status::error(diagnostics.format(sources));
      const bool there = table && !table->programs.empty() &&
                         std::ranges::all_of(table->programs, [](const std::string& program) {
                           return !find_program({program}).empty();
                         });
      if (there) here.push_back({name, make_scheduler(table)});
    }
  }
  return here;
}

Status scheduler_of(const Journal& journal, std::unique_ptr<Scheduler>* scheduler) {
  Journal::Texts texts;
  TRY(journal.sources(&texts));
  for (const auto& [path, text] : texts) {
    if (table_of_file(path).empty()) continue;
    Sources sources;
    Diagnostics diagnostics;
    const uint32_t file = sources.add(path, text);
    const auto table = read_scheduler_table(path, file, text, diagnostics);
    if (!table) return Status::error(diagnostics.format(sources));
    *scheduler = make_scheduler(table);
    return Status::ok();
  }
  *scheduler = make_slurm();
  return Status::ok();
}

}  // namespace tally
