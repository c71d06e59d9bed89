#include "engine/results/read/views.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/plan/plan.h"
#include "engine/workpackage/generator.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

using Workpackages = std::vector<Workpackage*>;

// The step that the logs belong to: the analysed step that no other analysed step depends on.
const Analyse* logged_step(const Benchmark& benchmark, LogProblem* problem) {
  std::map<std::string, const Analyse*> analysed;
  for (const Analyser& analyser : benchmark.analysers) {
    for (const Analyse& analyse : analyser.analyse) {
      if (benchmark.find_step(analyse.step.value) == nullptr) continue;  // left out by tags
      analysed.try_emplace(analyse.step.value, &analyse);
    }
  }
  std::vector<std::string> last;
  for (const auto& entry : analysed) {
    const std::string& name = entry.first;
    const bool inner = std::ranges::any_of(
        analysed, [&](const auto& other) { return depends_on(benchmark, other.first, name); });
    if (!inner) last.push_back(name);
  }
  if (last.size() == 1) return analysed[last.front()];
  problem->message = last.empty()
                         ? fmt::format("benchmark '{}' analyses no step", benchmark.name.value)
                         : fmt::format(
                               "benchmark '{}' analyses the steps {}: which of them the "
                               "logs are of cannot be told",
                               benchmark.name.value, join(last, ", "));
  return nullptr;
}

// The parameters in which the workpackages differ: "nodes=2 model=13".
std::string point_text(const Workpackage& workpackage, const std::set<TextId>& varying,
                       const TextPool& pool) {
  std::string text;
  for (const Binding& binding : workpackage.point.bindings) {
    if (varying.count(binding.name) == 0) continue;
    text += fmt::format(" {}={}", pool[binding.name], pool[binding.value]);
  }
  return text;
}

void list_points(const std::string& step, const Workpackages& workpackages, const TextPool& pool,
                 LogProblem* problem) {
  std::map<TextId, std::set<TextId>> values;
  for (const Workpackage* workpackage : workpackages) {
    for (const Binding& b : workpackage->point.bindings) values[b.name].insert(b.value);
  }
  std::set<TextId> varying;
  for (const auto& [name, different] : values) {
    if (different.size() > 1) varying.insert(name);
  }
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(kMost, workpackages.size()); ++i) {
    std::string iteration;
    if (workpackages[i]->iteration > 0)
      iteration = fmt::format(" iteration {}", workpackages[i]->iteration);
    problem->lines.push_back(fmt::format("  log {}: {}{}{}", i + 1, step,
                                         point_text(*workpackages[i], varying, pool), iteration));
  }
  if (workpackages.size() > kMost)
    problem->lines.push_back(fmt::format("  ... and {} more", workpackages.size() - kMost));
}

bool fits(const std::string& step, const Workpackages& workpackages, const TextPool& pool,
          size_t logs, LogProblem* problem) {
  if (workpackages.size() == logs) return true;
  auto counted = [](size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  problem->message =
      fmt::format("{} given, but with these tags and values step '{}' has {}", counted(logs, "log"),
                  step, counted(workpackages.size(), "workpackage"));
  problem->hint = workpackages.empty()
                      ? "the tags or a `where:` rule leave nothing of it"
                      : "give one log a workpackage, in this order, or choose points with --tag or "
                        "--set name=value";
  list_points(step, workpackages, pool, problem);
  return false;
}

using Seen = std::set<std::pair<dev_t, ino_t>>;  // files, by whatever name

// The given file; for a folder, the first file in it that the step's analyse names.
std::string log_file(const std::string& given, const Analyse& analyse, const Lookup& lookup) {
  struct stat info {};
  if (::stat(given.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || analyse.files.empty())
    return given;
  const std::string names = substitute(analyse.files.front().path.value, lookup);
  return given + "/" + split_strip(names, ",").front();
}

// Whether `path`, which stands for what was given, is a file and not among `seen`.
bool is_new_log(const std::string& path, const std::string& given, Seen* seen,
                LogProblem* problem) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
    // One measurement must not stand in two rows.
    if (seen->insert({info.st_dev, info.st_ino}).second) return true;
    problem->message = fmt::format("the log '{}' is given twice", path);
    problem->hint = "each workpackage has a log of its own: give them in the order of the points";
    return false;
  }
  problem->message = fmt::format("there is no log '{}'", path);
  if (path != given) problem->hint = "give the file itself";
  return false;
}

// A job script notes that it begins, and how its program ended, in files beside its log. If several
// logs are in one folder, those files cannot be assigned to one of them.
void take_end(const std::vector<std::string>& logs, WorkpackageView* view) {
  const auto folder = [](const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
  };
  const auto in_folder = [&](const std::string& log) {
    return absolute_path(log) == view->work_dir || folder(absolute_path(log)) == view->work_dir;
  };
  if (std::ranges::count_if(logs, in_folder) != 1) return;
  std::ifstream file(view->work_dir + "/job.status");
  int code = 0;
  if (!file && may_be_there(view->work_dir + "/job.status.begun")) {
    view->state = State::running;
    view->notes.push_back(
        fmt::format("workpackage {} ({}) has not ended, or was killed: beside its log is "
                    "job.status.begun, and no job.status",
                    view->id, view->step));
    return;
  }
  if (!(file >> code) || code == 0) return;
  view->state = State::failed;
  view->notes.push_back(fmt::format("workpackage {} ({}) failed: its job.status says {}", view->id,
                                    view->step, code));
}

}  // namespace

bool log_views(const ResultContext& context, const std::vector<std::string>& logs,
               const std::set<std::string>& tags, std::vector<WorkpackageView>* views,
               LogProblem* problem) {
  const Benchmark& benchmark = context.benchmark;
  const Analyse* analyse = logged_step(benchmark, problem);
  if (analyse == nullptr) return false;
  RunInfo info = run_info(benchmark, 0, ".", "");
  TextPool pool;
  Expander expander(benchmark, info, context.evaluator, pool, tags);
  Plan plan = make_plan(benchmark, expander, context.diagnostics);
  if (context.diagnostics.has_errors()) return false;
  Workpackages workpackages;
  const std::string& step_name = analyse->step.value;
  for (Workpackage& workpackage : plan.workpackages) {
    const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
    if (step.name.value == step_name) workpackages.push_back(&workpackage);
  }
  if (!fits(step_name, workpackages, pool, logs.size(), problem)) return false;
  Seen seen;
  for (size_t i = 0; i < workpackages.size(); ++i) {
    Workpackage& workpackage = *workpackages[i];
    if (Status s = finish_planned(benchmark, expander, &workpackage); !s) {
      problem->message = s.message();
      return false;
    }
    const WorkpackageValues values(benchmark, expander, workpackage, "DONE");
    const std::string log = log_file(logs[i], *analyse, values.lookup());
    if (!is_new_log(log, logs[i], &seen, problem)) return false;
    views->push_back(planned_view(benchmark, expander, workpackage, log));
    if (benchmark.rules.rows_are_marked) take_end(logs, &views->back());
  }
  return true;
}

}  // namespace tally
