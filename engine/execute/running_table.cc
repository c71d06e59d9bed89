#include "engine/execute/running_table.h"

#include <ctime>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/jobs/job_table.h"

namespace tally {

std::vector<std::string> running_table(const RunContext& context, std::vector<JobView> jobs,
                                       const std::unordered_map<int, int>& by_pid, size_t most) {
  std::vector<JobView> views = std::move(jobs);
  const WorkpackageGraph& graph = context.graph;
  for (const auto& [pid, id] : by_pid) {
    JobView& view = views.emplace_back();
    view.workpackage = id;
    view.id = "here";
    view.label = folder_name_of(context.run.benchmark(), graph[id].wp);
    view.state = "running";
    view.running = true;
  }
  for (JobView& view : views) {
    if (!graph.has(view.workpackage)) continue;
    for (const Binding& binding : graph[view.workpackage].wp.point.bindings) {
      if (binding.index == Binding::no_index) continue;
      view.parameters += (view.parameters.empty() ? "" : " ") + context.run.texts()[binding.name] +
                         "=" + one_line(context.run.texts()[binding.value]);
    }
  }
  return job_lines(views, most, context.status_line.table_columns(), std::time(nullptr));
}

}  // namespace tally
