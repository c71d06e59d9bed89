#include "engine/cli/generated_files.h"

#include <algorithm>
#include <functional>

#include "engine/execute/package_values.h"
#include "engine/execute/run_directory.h"
#include "steps/kinds.h"
#include "steps/pack.h"

namespace tally {
namespace {

// Calls `use` with all that the package's texts may name, and its work directory.
Status with_values(const Benchmark& benchmark, const RunInfo& run,
                   const std::vector<WorkPackage>& packages, WorkPackage package,
                   Expander& expander, const TextPool& pool, std::string* folder,
                   const std::function<Status(const PackageValues&, const std::string&)>& use) {
  const Step& step = benchmark.steps[static_cast<size_t>(package.step)];
  std::vector<ParentName> parents;
  for (int id : package.parents) {
    const WorkPackage& parent = packages[static_cast<size_t>(id)];
    parents.push_back({benchmark.steps[static_cast<size_t>(parent.step)].name.value, id});
  }
  auto work_dir = [&](const std::string& suffix) {
    *folder = package_directory_name(package.id, step.name.value, suffix);
    return run.rundir + "/" + *folder + "/work";
  };
  std::string suffix =
      PackageValues(run, step, package, pool, expander, parents, work_dir("")).apply(step.suffix);
  std::string work = work_dir(suffix);
  PackageValues placed(run, step, package, pool, expander, parents, work);
  std::string error = expander.finish(step, package.point, placed.builtins());
  if (!error.empty()) return Status::error(error);
  return use(PackageValues(run, step, package, pool, expander, parents, work), work);
}

}  // namespace

Status generated_files(const Benchmark& benchmark, const RunInfo& run,
                       const std::vector<WorkPackage>& packages, WorkPackage package,
                       Expander& expander, const TextPool& pool, Evaluator& evaluator,
                       std::string* folder, std::vector<FileBytes>* files) {
  const Step& step = benchmark.steps[static_cast<size_t>(package.step)];
  return with_values(benchmark, run, packages, std::move(package), expander, pool, folder,
                     [&](const PackageValues& values, const std::string&) {
                       return plan_substituted_files(benchmark, used_sets(step, values.lookup()),
                                                     values.lookup(), evaluator, files);
                     });
}

Status generated_pack(const Benchmark& benchmark, const RunInfo& run,
                      const std::vector<WorkPackage>& packages, const std::vector<int>& members,
                      Expander& expander, const TextPool& pool, Evaluator& evaluator,
                      std::string* folder, FileBytes* file) {
  PackRule rule;
  std::string options;
  std::vector<PackMember> scripts;
  for (const int id : members) {
    const WorkPackage& package = packages[static_cast<size_t>(id)];
    const Step& step = benchmark.steps[static_cast<size_t>(package.step)];
    std::string own;
    const auto use = [&](const PackageValues& values, const std::string& work) -> Status {
      const std::string name = platform_of(step, values.lookup()).submit_script;
      scripts.push_back({absolute_path(work), name, values.exported()});
      if (scripts.size() > 1) return Status::ok();
      std::string error;
      if (!pack_rule(step, values.lookup(), &rule, &error)) return Status::error(error);
      std::vector<FileBytes> files;
      Status made = plan_substituted_files(benchmark, used_sets(step, values.lookup()),
                                           values.lookup(), evaluator, &files);
      const auto script = std::find_if(files.begin(), files.end(),
                                       [&](const FileBytes& f) { return f.path == name; });
      if (script != files.end()) options = script_options(script->bytes);
      return made;
    };
    if (Status s = with_values(benchmark, run, packages, package, expander, pool, &own, use); !s) {
      return s;
    }
    if (scripts.size() == 1) *folder = pack_folder("", own).substr(1);
  }
  *file = {pack_script_name, pack_script(rule, options, scripts), 0644};
  return Status::ok();
}

}  // namespace tally
