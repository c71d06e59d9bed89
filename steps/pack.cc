// Packs: many workpackages in one job.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/duration.h"
#include "engine/base/text.h"
#include "engine/python/value.h"
#include "engine/workflow/job_options.h"
#include "steps/directives.h"
#include "steps/kinds.h"

namespace tally {
namespace {

Status read_count(const Text& text, const char* key, const Lookup& lookup, int* count) {
  if (text.value.empty()) return Status::ok();
  const std::string value(strip(substitute(text.value, lookup)));
  const std::optional<long long> number = whole_number(value);
  if (!number || *number < 1 || *number > 1000000) {
    return Status::error(
        fmt::format("pack: {} is '{}', not a whole number of at least 1", key, value));
  }
  *count = static_cast<int>(*number);
  return Status::ok();
}

// The word of an option at the start of the script, such as --output=WORD, as it is written there.
std::string word_of(const std::string& options, const std::string& name) {
  const std::string start = "#SBATCH --" + name + "=";
  std::string value;
  for (const std::string& line : split_strip(options, "\n")) {
    if (starts_with(line, start)) value = line.substr(start.size());
  }
  return value;
}

std::string option_of(const std::string& options, const std::string& name) {
  return read_directive_word(word_of(options, name));
}

// Multiplies an amount as sbatch reads one: "16G" times 3 is "48G", and "+100" is "300". Text that
// does not start with a number stays unchanged.
std::string times(std::string amount, int factor) {
  if (starts_with(amount, "+")) amount.erase(0, 1);
  const size_t digits = amount.find_first_not_of("0123456789");
  const std::optional<long long> number = whole_number(amount.substr(0, digits));
  if (!number) return amount;
  const std::string unit = digits == std::string::npos ? "" : amount.substr(digits);
  return integer_value(BigInt(*number) * BigInt(factor)).str() + unit;
}

// The same of a list of resources: "gpu:a100:2,nvme" times 3 is "gpu:a100:6,nvme:3". One without a
// number, perhaps with a type, is one of it.
std::string list_times(const std::string& list, int factor) {
  std::vector<std::string> grown;
  for (const std::string& resource : split_strip(list, ",")) {
    const size_t amount = resource.find_last_of(":=") + 1;  // 0: there is neither
    const size_t unit = resource.find_first_not_of("0123456789", amount);
    const bool is_amount =
        unit != amount && (unit == std::string::npos || unit + 1 == resource.size());
    if (resource == "none") {
      grown.push_back(resource);
    } else if (is_amount) {
      grown.push_back(resource.substr(0, amount) + times(resource.substr(amount), factor));
    } else {
      grown.push_back(fmt::format("{}:{}", resource, factor));
    }
  }
  return join(grown, ",");
}

// The options that say how much a node or the job gets, beside its tasks and its memory. A member's
// srun asks for its own part by the variable.
constexpr std::pair<const char*, const char*> kShared[] = {
    {"gres", "SLURM_GRES"},
    {"gpus", "SLURM_GPUS"},
    {"gpus-per-node", "SLURM_GPUS_PER_NODE"},
    {"gpus-per-socket", "SLURM_GPUS_PER_SOCKET"}};

// Redirects a member's output as its script's own options say. Slurm does not read them in a pack.
std::string redirections(const std::string& options) {
  std::string out = output_file(word_of(options, "output"));
  std::string err = output_file(word_of(options, "error"));
  // A pattern of Slurm's, such as %j, cannot be used as a file name.
  if (out.empty()) out = "stdout";
  if (err.empty() && !word_of(options, "error").empty()) err = "stderr";
  const char* arrow = option_of(options, "open-mode") == "truncate" ? ">" : ">>";
  std::string text = fmt::format("{} {}", arrow, shell_quote(out));
  return text +
         (err.empty() || err == out ? " 2>&1" : fmt::format(" 2{} {}", arrow, shell_quote(err)));
}

std::string exports(const PackMember& member) {
  std::string text;
  for (const auto& [name, value] : member.environment) {
    text += fmt::format(" {}={}", name, shell_quote(value));
  }
  return text.empty() ? text : " && export" + text;
}

// Whether the line sets the output files. These differ for each member.
bool names_output(std::string_view line) {
  return starts_with(line, "#SBATCH --output=") || starts_with(line, "#SBATCH --error=");
}

// The lines that say where the output of the job pack itself goes.
std::string output_lines(const PackRule& rule, const std::string& name) {
  const std::string file = directive_word("slurm", output_directive(rule.folder, name));
  return fmt::format("#SBATCH --output={0}\n#SBATCH --error={0}\n\n", file);
}

std::string array_script(const PackRule& rule, const std::string& options,
                         const std::vector<PackMember>& members) {
  std::string script =
      fmt::format("#!/bin/bash\n{}#SBATCH --array=0-{}", options, members.size() - 1);
  if (rule.at_once > 0) script += fmt::format("%{}", rule.at_once);
  script += "\n" + output_lines(rule, "pack.%a.out") +
            "# Each task of the array is one workpackage: its own script, in its own directory.\n"
            "case $SLURM_ARRAY_TASK_ID in\n";
  for (size_t i = 0; i < members.size(); ++i) {
    script += fmt::format("  {}) cd {}{} &&\n    exec bash {} {} ;;\n", i,
                          shell_quote(members[i].directory), exports(members[i]),
                          shell_quote(members[i].script), redirections(members[i].options));
  }
  return script + "esac\n";
}

// Multiplies the options that grow with the number of members running side by side.
std::string grown_options(const PackRule& rule, const std::string& options, size_t members) {
  std::string lines;
  if (const auto seconds = pack_seconds(rule, members)) {
    const auto minutes = static_cast<long long>(std::ceil(*seconds / 60));
    lines += fmt::format("#SBATCH --time={:02}:{:02}:00\n", minutes / 60, minutes % 60);
  }
  if (rule.at_once < 2) return lines;
  const std::string tasks = option_of(options, "ntasks-per-node");
  const std::string memory = option_of(options, "mem");
  if (!tasks.empty()) {
    lines += fmt::format("#SBATCH --ntasks-per-node={}\n", times(tasks, rule.at_once));
  }
  for (const auto& [option, variable] : kShared) {
    const std::string list = option_of(options, option);
    if (!list.empty())
      lines += fmt::format("#SBATCH --{}={}\n", option,
                           directive_word("slurm", list_times(list, rule.at_once)));
  }
  if (!memory.empty()) {
    lines +=
        fmt::format("#SBATCH --mem={}\n", directive_word("slurm", times(memory, rule.at_once)));
  }
  return lines;
}

// Limits srun of a member to its share of the allocation. `options`: those of a member alone.
std::string share_lines(const PackRule& rule, const std::string& options) {
  if (rule.at_once < 2) return {};
  const auto number = [](const std::string& text) {
    return text.empty() ? 1 : std::max(1L, strtol(text.c_str(), nullptr, 10));
  };
  const long tasks = number(rule.nodes) * number(rule.tasks_per_node);
  std::string lines = fmt::format(
      "# A member's srun takes its share of the allocation, not all of it.\n"
      "unset SLURM_MEM_PER_CPU SLURM_MEM_PER_GPU\n"
      "export SLURM_EXACT=1 SLURM_MEM_PER_NODE=0 SLURM_NTASKS={0} SLURM_NPROCS={0} "
      "SLURM_NTASKS_PER_NODE={1}\n",
      tasks, number(rule.tasks_per_node));
  // Not SLURM_STEP_GRES: srun 22.05 does not read it as it reads --gres.
  for (const auto& [option, variable] : kShared) {
    const std::string list = option_of(options, option);
    if (!list.empty()) lines += fmt::format("export {}={}\n", variable, shell_quote(list));
  }
  return lines;
}

// A signal that the script gets is passed on to the members, of which each finds out what it means.
// A member that has not begun is told by the script, which asks in the same way.
std::string signal_lines(const PackMember& member) {
  std::string lines;
  if (member.functions.empty()) {
    // The platform's job scripts do not ask.
    lines =
        "job_ask() { job_cause=other job_words=''; }\n"
        "job_write_status() { echo \"$1\" > \"$job_status_file.new\" && "
        "mv -f \"$job_status_file.new\" \"$job_status_file\"; }\n";
  } else {
    lines = ". " + shell_quote(member.functions) + " || exit\n";
  }
  return lines +
         "stop=''\nends() {\n"
         "  job_ask\n"
         "  case $job_cause in\n"
         "    ended) exit 143 ;;\n"
         "    limit) stop='the time of its pack was over' ;;\n"
         "    preempted) stop='its pack was preempted' job_preempted=1 ;;\n"
         "    *) stop=\"its pack got a signal$job_words\" ;;\n  esac\n"
         "  for member in $(jobs -rp); do kill -s TERM \"$member\"; done\n}\n"
         "job_signals=${job_signals:-TERM USR1 USR2}\n"
         "# shellcheck disable=SC2086 # several names\n"
         "trap ends $job_signals\n\n";
}

std::string steps_script(const PackRule& rule, const std::string& options,
                         const std::vector<PackMember>& members) {
  std::string script =
      fmt::format("#!/bin/bash\n{}{}", options, grown_options(rule, options, members.size()));
  script +=
      output_lines(rule, "pack.out") +
      "# Each member of this job is one workpackage: its own script, in its own directory. How one "
      "of them ends is "
      "no\n# matter of the others.\n" +
      share_lines(rule, options) + signal_lines(members.front()) +
      "# What a member says of itself that has not ended when the job's time is over.\n"
      "export job_pack_end='the time of its pack was over'\n" +
      "member() { # member DIRECTORY STATUS_FILE REASON_FILE COMMAND\n";
  script += fmt::format(
      "  while [ -z \"$stop\" ] && [ \"$(jobs -rp | wc -l)\" -ge {} ]; do wait -n; done\n",
      std::max(1, rule.at_once));
  script +=
      "  if [ -n \"$stop\" ]; then\n"
      "    cd \"$1\" || return\n"
      "    echo \"not begun: $stop\" > \"$3\"\n"
      "    job_status_file=$2\n"
      "    job_write_status 143\n"
      "    return\n  fi\n"
      "  (trap - $job_signals; cd \"$1\" && eval \"exec $4\") &\n}\n\n";
  for (const PackMember& member : members) {
    std::string command = "env";
    for (const auto& [name, value] : member.environment) {
      command += " " + shell_quote(name + "=" + value);
    }
    command += " bash " + shell_quote(member.script) + " " + redirections(member.options);
    script += fmt::format("member {} {} {} \\\n  {}\n", shell_quote(member.directory),
                          shell_quote(member.status_file), shell_quote(member.reason_file),
                          shell_quote(command));
  }
  return script + "while [ -n \"$(jobs -rp)\" ]; do wait; done\nexit 0\n";
}

}  // namespace

Status TallyKinds::pack_rule(const Step& step, const Lookup& lookup, PackRule* rule) const {
  *rule = PackRule();
  const std::string kind(strip(step.pack.kind.value));
  if (kind == "array") rule->kind = PackRule::Kind::array;
  if (kind == "steps") rule->kind = PackRule::Kind::steps;
  if (rule->kind == PackRule::Kind::none) return Status::ok();
  if (rule->kind == PackRule::Kind::steps) rule->at_once = 1;
  rule->nodes = stripped_value(lookup, "nodes");
  rule->tasks_per_node = stripped_value(lookup, "taskspernode");
  rule->seconds = parse_duration(stripped_value(lookup, "timelimit"));
  TRY(read_count(step.pack.size, "size", lookup, &rule->size));
  return read_count(step.pack.at_once, "at_once", lookup, &rule->at_once);
}

std::string TallyKinds::script_options(const std::string& script) const {
  std::string options;
  size_t at = 0;
  while (at < script.size()) {
    const size_t end = std::min(script.find('\n', at), script.size());
    const std::string line = script.substr(at, end - at);
    at = end + 1;
    if (starts_with(line, "#SBATCH ")) {
      options += line + "\n";
    } else if (!strip(line).empty() && line[0] != '#') {
      break;  // Slurm reads no options after the first command
    }
  }
  return options;
}

PackMember TallyKinds::pack_member(const std::string& directory, const std::string& script,
                                   const std::string& options, const NamedValues& environment,
                                   const Lookup& lookup) const {
  PackMember member{directory, script, environment, options};
  for (const auto& [name, file] :
       {std::pair{"status_file", &member.status_file}, {"reason_file", &member.reason_file}}) {
    if (const std::string value = stripped_value(lookup, name); !value.empty()) *file = value;
  }
  if (const std::string file = stripped_value(lookup, "job_functions"); !file.empty()) {
    member.functions = (std::filesystem::path(directory) / file).lexically_normal();
  }
  return member;
}

std::string TallyKinds::common_options(const std::string& options) const {
  std::string common;
  for (const std::string& line : split_strip(options, "\n")) {
    if (!line.empty() && !names_output(line)) common += line + "\n";
  }
  return common;
}

std::string TallyKinds::pack_script(const PackRule& rule, const std::string& options,
                                    const std::vector<PackMember>& members) const {
  return rule.kind == PackRule::Kind::array ? array_script(rule, options, members)
                                            : steps_script(rule, options, members);
}

}  // namespace tally
