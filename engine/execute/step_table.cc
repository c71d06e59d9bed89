#include "engine/execute/step_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/execute/jobs/job_table.h"
#include "engine/execute/status_line.h"

namespace tally {
namespace {

std::string bar_of(const StepProgress& step) {
  constexpr int kWidth = 20;
  const int full = step.total == 0 ? 0 : step.ended * kWidth / step.total;
  return "[" + std::string(static_cast<size_t>(full), '#') +
         std::string(static_cast<size_t>(kWidth - full), '.') + "]";
}

std::string states_of(const StepProgress& step) {
  std::vector<std::string> states;
  const auto add = [&](int count, const char* word) {
    if (count > 0) states.push_back(fmt::format("{} {}", count, word));
  };
  add(step.running, "running");
  add(step.waiting, "waiting");
  add(step.failed, "failed");
  return join(states, ", ");
}

bool is_open(const StepProgress& step) {
  return step.ended < step.total || !step.complete;
}

}  // namespace

std::vector<std::string> step_lines(const std::vector<StepProgress>& steps, size_t most,
                                    size_t columns) {
  constexpr size_t kMostName = 24;
  std::vector<const StepProgress*> shown;
  for (const bool open : {true, false})
    for (const StepProgress& step : steps)
      if (is_open(step) == open && shown.size() < most) shown.push_back(&step);
  std::ranges::sort(shown);  // the order of the workflow
  size_t name_width = 0;
  size_t count_width = 0;
  std::vector<std::pair<std::string, std::string>> texts;
  for (const StepProgress* step : shown) {
    std::string name = without_controls(step->name);
    if (name.size() > kMostName) name = name.substr(0, kMostName - 3) + "...";
    const std::string count =
        fmt::format("{}/{}{}", step->ended, step->total, step->complete ? "" : "+");
    name_width = std::max(name_width, name.size());
    count_width = std::max(count_width, count.size());
    texts.emplace_back(name, count);
  }
  std::vector<std::string> lines;
  for (size_t i = 0; i < shown.size(); ++i) {
    std::string line = fmt::format("  {:<{}}  {}  {:>{}}", texts[i].first, name_width,
                                   bar_of(*shown[i]), texts[i].second, count_width);
    if (const std::string states = states_of(*shown[i]); !states.empty()) line += "  " + states;
    if (shown[i]->left >= 0) line += "  ETA " + format_duration(shown[i]->left);
    if (line.size() > columns) line.resize(columns);
    lines.push_back(line);
  }
  return lines;
}

std::vector<StepProgress> StepTable::progress(WorkpackageGraph& graph,
                                              const std::vector<Step>& steps,
                                              Clock::time_point now) {
  std::vector<StepProgress> out;
  for (size_t i = 0; i < steps.size(); ++i) {
    StepProgress& step = out.emplace_back();
    step.name = steps[i].name.value;
    step.complete = graph.complete(static_cast<int>(i));
    for (const int id : graph.of_step(static_cast<int>(i))) {
      if (!graph.has(id)) continue;  // dropped: not needed any more
      const State state = graph[id].wp.outcome.state;
      ++step.total;
      step.ended += has_ended(state) ? 1 : 0;
      step.failed += has_failed(state) ? 1 : 0;
      step.running += state == State::running ? 1 : 0;
      step.waiting += state == State::waiting ? 1 : 0;
    }
    if (step.running == 0 && begins_.count(i) == 0) continue;
    const Begin& begin = begins_.try_emplace(i, Begin{now, step.ended}).first->second;
    const int here = step.ended - begin.ended;
    if (here > 0 && step.ended < step.total) {
      const double elapsed = std::chrono::duration<double>(now - begin.time).count();
      step.left = elapsed / here * (step.total - step.ended);
    }
  }
  return out;
}

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
