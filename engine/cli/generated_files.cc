#include "engine/cli/generated_files.h"

#include "engine/execute/package_values.h"
#include "engine/execute/run_directory.h"

namespace tally {

Status generated_files(const Benchmark& benchmark, const RunInfo& run,
                       const std::vector<WorkPackage>& packages, WorkPackage package,
                       Expander& expander, const TextPool& pool, Evaluator& evaluator,
                       std::string* folder, std::vector<FileBytes>* files) {
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
  PackageValues values(run, step, package, pool, expander, parents, work);
  return plan_substituted_files(benchmark, used_sets(step, values.lookup()), values.lookup(),
                                evaluator, files);
}

}  // namespace tally
