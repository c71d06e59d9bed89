#include "engine/execute/jobs/job_packs.h"

#include <algorithm>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/secrets.h"
#include "engine/workspace/environment.h"

namespace tally {

Status JobPacks::add(Job job, const PackRule& rule, const Task& task) {
  std::string script;
  TRY(read_file(absolute_path(job.request.script, job.request.directory), &script));
  const StepKinds& kinds = *task.step().kinds;
  Member member;
  member.in_script =
      kinds.pack_member(job.request.directory, job.request.script, kinds.script_options(script),
                        task.values().exported(), task.values().lookup());
  member.secret = shows_secret_in_pack(member.in_script, task.secrets());
  const std::string options = kinds.common_options(member.in_script.options);
  // Exported parameters are set in the pack's script, `env` in the member's own. Any other
  // difference makes another pack.
  EnvironmentChanges rest = task.environment_beside_env();
  for (const auto& [name, value] : member.in_script.environment) rest.erase(name);
  std::string key = job.named ? job.request.name : options;
  if (!job.named) {
    for (const std::string& change : pack_changes(rest)) key += change + "\n";
  }
  Pack& pack = open_[{task.graph_step(), key}];
  pack.kinds = &kinds;
  pack.rule = rule;
  pack.options = options;
  pack.named = job.named;
  member.job = std::move(job);
  pack.members.push_back(std::move(member));
  return Status::ok();
}

std::vector<int> JobPacks::members() const {
  std::vector<int> workpackages;
  for (const auto& [key, pack] : open_) {
    for (const Member& member : pack.members) workpackages.push_back(member.job.workpackage);
  }
  return workpackages;
}

Status JobPacks::take(bool all, const std::string& run_dir, std::vector<Job>* jobs) {
  for (auto entry = open_.begin(); entry != open_.end();) {
    Pack& pack = entry->second;
    const auto size = static_cast<size_t>(pack.rule.size);
    // The order is by number. The order in which they became ready does not matter.
    std::ranges::sort(pack.members, [](const Member& a, const Member& b) {
      return a.job.workpackage < b.job.workpackage;
    });
    while (pack.members.size() >= size || (all && !pack.members.empty())) {
      Pack full;
      full.kinds = pack.kinds;
      full.rule = pack.rule;
      full.options = pack.options;
      full.named = pack.named;
      const auto end =
          pack.members.begin() + static_cast<std::ptrdiff_t>(std::min(
                                     pack.named ? pack.members.size() : size, pack.members.size()));
      full.members.assign(std::make_move_iterator(pack.members.begin()),
                          std::make_move_iterator(end));
      pack.members.erase(pack.members.begin(), end);
      TRY(make_job(std::move(full), run_dir, jobs));
    }
    entry = pack.members.empty() ? open_.erase(entry) : std::next(entry);
  }
  return Status::ok();
}

Status JobPacks::make_job(Pack pack, const std::string& run_dir, std::vector<Job>* jobs) {
  Job leader = std::move(pack.members.front().job);
  const std::string folder = absolute_path(pack_folder(run_dir, leader.label));
  const char kind = pack.rule.kind == PackRule::Kind::array ? '#' : '@';
  if (!pack.named) {
    std::vector<PackMember> members;
    for (const Member& member : pack.members) members.push_back(member.in_script);
    const std::string root = absolute_path(run_dir);
    TRY(make_own_directories(root, folder));
    pack.rule.folder = folder;
    const std::string script = pack.kinds->pack_script(pack.rule, pack.options, members);
    // It sets the exported parameters, and is given to the scheduler by its user.
    const bool secret =
        std::ranges::any_of(pack.members, [](const Member& member) { return member.secret; });
    const std::string path = folder + "/" + pack_script_name;
    TRY(write_own_file(root, path, script, secret ? private_mode : 0644));
    leader.member = kind + std::to_string(0);
  }
  leader.request.directory = folder;
  leader.request.script = pack_script_name;
  for (std::string& entry : leader.request.environment) {
    if (entry.rfind("PWD=", 0) == 0) entry = "PWD=" + folder;
  }
  for (size_t i = 1; i < pack.members.size(); ++i) {
    Job member = std::move(pack.members[i].job);
    member.request.name = leader.request.name;
    if (!pack.named) member.member = kind + std::to_string(i);
    leader.members.push_back(std::move(member));
  }
  jobs->push_back(std::move(leader));
  return Status::ok();
}

}  // namespace tally
