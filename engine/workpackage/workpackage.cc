#include "engine/workpackage/workpackage.h"

#include <algorithm>

#include "engine/base/text.h"

namespace tally {

std::string workpackage_directory_name(int id, const std::string& step, const std::string& suffix) {
  std::string name = padded_id(id) + "_" + step;
  if (!suffix.empty()) name += "_" + suffix;
  // Values of parameters may hold anything. A slash would make folders, and the length of a name is
  // limited.
  std::replace(name.begin(), name.end(), '/', '_');
  if (name.size() > 200) name.resize(200);
  return name;
}

std::string folder_name_of(const Benchmark& benchmark, const Workpackage& workpackage) {
  if (!workpackage.directory.empty()) return workpackage.directory;
  const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
  return workpackage_directory_name(workpackage.id, step.name.value, "");
}

std::string work_dir_of(const Benchmark& benchmark, const std::string& run_dir,
                        const Workpackage& workpackage) {
  if (!workpackage.work_dir.empty()) return workpackage.work_dir;
  return run_dir + "/" + folder_name_of(benchmark, workpackage) + "/work";
}

}  // namespace tally
