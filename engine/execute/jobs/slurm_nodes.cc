#include "engine/execute/jobs/slurm_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/workspace/environment.h"
#include "engine/workspace/external_command.h"

namespace tally {
namespace {

// The user's settings for sinfo could hide nodes.
std::vector<std::string> plain_environment() {
  Environment environment = current_environment();
  for (auto entry = environment.begin(); entry != environment.end();)
    entry = starts_with(entry->first, "SINFO_") ? environment.erase(entry) : std::next(entry);
  environment["LC_ALL"] = "C";
  return entries(environment);
}

Status ask(const std::vector<std::string>& words, std::string* out) {
  ExternalCommand command;
  command.words = words;
  command.environment = plain_environment();
  const CommandResult result = run_external(command);
  if (!result.started)
    return Status::error(fmt::format("no folder of PATH has Slurm's `{}`", words.front()))
        .with_hint("--local tests the GPUs of this machine without Slurm");
  if (result.status != 0) return Status::error(error_text(result, words.front()));
  *out = result.out;
  return Status::ok();
}

// The states in which a node starts no job, and will not by itself. "*": it does not answer.
bool takes_no_jobs(const std::string& state) {
  constexpr const char* kStates[] = {"down",  "drain",  "fail",       "error", "unknown",
                                     "maint", "future", "no_respond", "reboot"};
  return state.find('*') != std::string::npos ||
         std::ranges::any_of(kStates, [&](const char* one) { return starts_with(state, one); });
}

}  // namespace

Status expand_nodes(const std::string& list, std::vector<std::string>* names) {
  std::string out;
  TRY(ask({"scontrol", "show", "hostnames", list}, &out));
  for (std::string& name : split_strip(out, "\n"))
    if (!name.empty() && !contains(*names, name)) names->push_back(std::move(name));
  return Status::ok();
}

Status slurm_nodes(const std::string& partition, std::vector<SlurmNode>* nodes) {
  std::vector<std::string> words = {"sinfo", "--noheader", "--Node", "--all", "--format=%N|%T|%E"};
  if (!partition.empty()) words.push_back("--partition=" + partition);
  std::string out;
  TRY(ask(words, &out));
  std::set<std::string> known;  // a node has a line for each of its partitions
  for (const std::string& line : split_strip(out, "\n")) {
    const size_t first = line.find('|'), second = line.find('|', first + 1);
    if (second == std::string::npos) continue;
    SlurmNode node;
    node.name = line.substr(0, first);
    const std::string state = line.substr(first + 1, second - first - 1);
    const std::string reason = line.substr(second + 1);
    node.is_idle = state == "idle";
    if (takes_no_jobs(state))
      node.unusable = reason.empty() || reason == "none" ? state : state + ": " + reason;
    if (known.insert(node.name).second) nodes->push_back(std::move(node));
  }
  return Status::ok();
}

}  // namespace tally
