#include "engine/plan/generated_files.h"

#include <algorithm>
#include <functional>

#include "engine/base/files.h"
#include "engine/base/secrets.h"
#include "engine/workpackage/generator.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/environment.h"
#include "engine/workspace/setup_inputs.h"

namespace tally {
namespace {

// Calls `use` with all values that the workpackage's texts may name, and with its work directory.
Status with_values(const Benchmark& benchmark, Workpackage workpackage, Expander& expander,
                   std::string* folder,
                   const std::function<Status(const WorkpackageValues&, const std::string&)>& use) {
  TRY(finish_planned(benchmark, expander, &workpackage));
  *folder = folder_name_of(benchmark, workpackage);
  return use(WorkpackageValues(benchmark, expander, workpackage),
             work_dir_of(benchmark, expander.run().rundir, workpackage));
}

// The entries among which secrets are, as far as they are known before a run.
std::vector<std::string> planned_secrets(const Step& step, const WorkpackageValues& values) {
  const Environment now = current_environment();
  return with_secrets(values, with_changes(now, declared_environment(step, values, now)));
}

}  // namespace

Status generated_files(const Benchmark& benchmark, Workpackage workpackage, Expander& expander,
                       std::string* folder, std::vector<FileBytes>* files) {
  const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
  return with_values(benchmark, std::move(workpackage), expander, folder,
                     [&](const WorkpackageValues& values, const std::string&) {
                       Status made =
                           plan_substituted_files(benchmark, used_sets(step, values.lookup()),
                                                  values.lookup(), expander.evaluator(), files);
                       keep_secrets(planned_secrets(step, values), files);
                       return made;
                     });
}

Status generated_functions(const Benchmark& benchmark, Workpackage workpackage, Expander& expander,
                           FileBytes* file) {
  const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
  std::string folder;
  const auto use = [&](const WorkpackageValues& values, const std::string& work) -> Status {
    const std::string* name = job_value(values.lookup(), "job_functions");
    if (name == nullptr) return Status::ok();
    std::vector<PlannedFile> files;
    for (const std::string& set : used_sets(step, values.lookup())) {
      const auto found = benchmark.file_sets.find(set);
      if (found == benchmark.file_sets.end()) continue;
      for (const auto& entry : found->second.entries) {
        const auto* copy = std::get_if<FileCopy>(&entry);
        if (copy == nullptr || values.apply(copy->target) != *name) continue;
        TRY(list_files(*copy, values.lookup(), work, &files));
      }
    }
    if (files.empty()) return Status::ok();
    file->path = absolute_path(files.front().target, absolute_path(work));
    return read_file(files.front().source, &file->bytes);
  };
  return with_values(benchmark, std::move(workpackage), expander, &folder, use);
}

Status generated_pack(const Benchmark& benchmark, const std::vector<Workpackage>& workpackages,
                      const std::vector<int>& members, Expander& expander, GeneratedPack* pack) {
  const StepKinds* kinds = &plain_kinds();
  PackRule rule;
  std::string options;
  std::vector<PackMember> scripts;
  bool secret = false;
  for (const int id : members) {
    const Workpackage& workpackage = workpackages[static_cast<size_t>(id)];
    const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
    kinds = step.kinds;
    std::string own;
    const auto use = [&](const WorkpackageValues& values, const std::string& work) -> Status {
      const std::string name = step.kinds->platform_of(step, values.lookup()).submit_script;
      scripts.push_back(step.kinds->pack_member(absolute_path(work), name, options,
                                                values.exported(), values.lookup()));
      secret = secret || shows_secret_in_pack(scripts.back(), planned_secrets(step, values));
      // The script options say where the output goes. They differ between members only if the step
      // has a work_dir. Otherwise the first member's options serve for all.
      if (scripts.size() > 1 && step.work_dir.value.empty()) return Status::ok();
      TRY(step.kinds->pack_rule(step, values.lookup(), &rule));
      std::vector<FileBytes> files;
      Status made = plan_substituted_files(benchmark, used_sets(step, values.lookup()),
                                           values.lookup(), expander.evaluator(), &files);
      const auto script =
          std::ranges::find_if(files, [&](const FileBytes& f) { return f.path == name; });
      if (script != files.end()) options = step.kinds->script_options(script->bytes);
      scripts.back().options = options;
      return made;
    };
    TRY(with_values(benchmark, workpackage, expander, &own, use));
    if (scripts.size() == 1) pack->folder = pack_folder("", own).substr(1);
  }
  rule.folder = absolute_path(expander.run().rundir + "/" + pack->folder);
  pack->script = {pack_script_name,
                  kinds->pack_script(rule, kinds->common_options(options), scripts),
                  secret ? private_mode : 0644};
  return Status::ok();
}

}  // namespace tally
