#include "engine/cli/log_results.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "engine/base/path_text.h"
#include "engine/base/text.h"
#include "engine/cli/input.h"
#include "engine/cli/results.h"
#include "engine/cli/views.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/substitute.h"
#include "engine/plan/plan.h"
#include "engine/results/missing_rows.h"
#include "engine/workpackage/generator.h"
#include "engine/workpackage/values.h"

namespace tally {
namespace {

using Workpackages = std::vector<Workpackage*>;

const Benchmark* only_benchmark(const Invocation& invocation, const Input& input,
                                const std::string& file) {
  std::vector<const Benchmark*> with_result;
  std::vector<std::string> names;
  for (const Benchmark& benchmark : input.workflow->benchmarks) {
    if (benchmark.results.empty()) continue;
    with_result.push_back(&benchmark);
    names.push_back(benchmark.name.value);
  }
  if (with_result.size() == 1) return with_result.front();
  if (with_result.empty()) {
    print_error(invocation, fmt::format("'{}' defines no result", file));
  } else {
    print_error(invocation,
                fmt::format("'{}' has {} benchmarks with results ({}); logs can be those of one",
                            file, names.size(), join(names, ", ")),
                "leave the others out with `selection:` in the file or with tags");
  }
  return nullptr;
}

// The step whose logs are meant: the analysed one that no other analysed step depends on.
const Analyse* logged_step(const Invocation& invocation, const Benchmark& benchmark) {
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
    const bool inner = std::any_of(analysed.begin(), analysed.end(), [&](const auto& other) {
      return depends_on(benchmark, other.first, name);
    });
    if (!inner) last.push_back(name);
  }
  if (last.size() == 1) return analysed[last.front()];
  print_error(invocation,
              last.empty() ? fmt::format("benchmark '{}' analyses no step", benchmark.name.value)
                           : fmt::format("benchmark '{}' analyses the steps {}: which of them the "
                                         "logs are of cannot be told",
                                         benchmark.name.value, join(last, ", ")));
  return nullptr;
}

// The parameters by which the workpackages differ: "nodes=2 model=13".
std::string point_text(const Workpackage& workpackage, const std::set<TextId>& varying,
                       const TextPool& pool) {
  std::string text;
  for (const Binding& binding : workpackage.point.bindings) {
    if (varying.count(binding.name) == 0) continue;
    text += fmt::format(" {}={}", pool[binding.name], pool[binding.value]);
  }
  return text;
}

void list_points(const std::string& step, const Workpackages& workpackages, const TextPool& pool) {
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
    fmt::print(stderr, "  log {}: {}{}{}\n", i + 1, step,
               point_text(*workpackages[i], varying, pool), iteration);
  }
  if (workpackages.size() > kMost)
    fmt::print(stderr, "  ... and {} more\n", workpackages.size() - kMost);
}

bool fits(const Invocation& invocation, const std::string& step, const Workpackages& workpackages,
          const TextPool& pool, size_t logs) {
  if (workpackages.size() == logs) return true;
  auto counted = [](size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  print_error(invocation,
              fmt::format("{} given, but with these tags and values step '{}' has {}",
                          counted(logs, "log"), step, counted(workpackages.size(), "workpackage")),
              workpackages.empty()
                  ? "the tags or a `where:` rule leave nothing of it"
                  : "give one log a workpackage, in this order, or choose points with --tag or "
                    "--set name=value");
  list_points(step, workpackages, pool);
  return false;
}

// A folder stands for the file in it that the step's analyse names first.
bool log_file(const Invocation& invocation, const std::string& given, const Analyse& analyse,
              const Lookup& lookup, std::string* path) {
  struct stat info {};
  *path = given;
  if (::stat(given.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && !analyse.files.empty()) {
    const std::string names = substitute(analyse.files.front().path.value, lookup);
    *path = given + "/" + split_strip(names, ",").front();
  }
  if (::stat(path->c_str(), &info) == 0 && S_ISREG(info.st_mode)) return true;
  print_error(invocation, fmt::format("there is no log '{}'", *path),
              *path == given ? std::string() : "give the file itself");
  return false;
}

// A job script writes how its program ended beside its log. Where several logs lie in one folder it
// cannot be told whose end that is.
void take_end(const std::vector<std::string>& logs, WorkpackageView* view) {
  const auto folder = [](const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
  };
  const auto in_folder = [&](const std::string& log) {
    return absolute_path(log) == view->work_dir || folder(absolute_path(log)) == view->work_dir;
  };
  if (std::count_if(logs.begin(), logs.end(), in_folder) != 1) return;
  std::ifstream file(view->work_dir + "/job.status");
  int code = 0;
  if (!(file >> code) || code == 0) return;
  view->state = State::failed;
  view->notes.push_back(fmt::format("workpackage {} ({}) failed: its job.status says {}", view->id,
                                    view->step, code));
}

class LogResults {
 public:
  LogResults(const Invocation& invocation, const ResultArgs& args)
      : invocation_(invocation), args_(args), evaluator_(make_evaluator(".")) {}

  int show() {
    const std::string& file = args_.runs.directory;
    input_ = load_input(invocation_, file, args_.input, invocation_.strict);
    if (!input_->workflow) return kBadInput;
    benchmark_ = only_benchmark(invocation_, *input_, file);
    if (benchmark_ == nullptr) return kBadInput;
    analyse_ = logged_step(invocation_, *benchmark_);
    if (analyse_ == nullptr) return kBadInput;
    std::vector<WorkpackageView> views;
    if (!make_views(&views)) return kBadInput;
    return render_all(views);
  }

 private:
  bool make_views(std::vector<WorkpackageView>* views) {
    RunInfo info = run_info(*benchmark_, 0, ".", "");
    TextPool pool;
    Expander expander(*benchmark_, info, *evaluator_, pool, input_->tags());
    Plan plan = make_plan(*benchmark_, expander, diagnostics_);
    if (diagnostics_.has_errors()) {
      print_diagnostics(diagnostics_, input_->sources);
      return false;
    }
    Workpackages workpackages;
    const std::string& step_name = analyse_->step.value;
    for (Workpackage& workpackage : plan.workpackages) {
      const Step& step = benchmark_->steps[static_cast<size_t>(workpackage.step)];
      if (step.name.value == step_name) workpackages.push_back(&workpackage);
    }
    if (!fits(invocation_, step_name, workpackages, pool, args_.logs.size())) return false;
    for (size_t i = 0; i < workpackages.size(); ++i) {
      Workpackage& workpackage = *workpackages[i];
      if (Status s = finish_planned(*benchmark_, expander, &workpackage); !s) {
        print_error(invocation_, s.message());
        return false;
      }
      const WorkpackageValues values(*benchmark_, expander, workpackage, "DONE");
      std::string log;
      if (!log_file(invocation_, args_.logs[i], *analyse_, values.lookup(), &log)) return false;
      views->push_back(planned_view(*benchmark_, expander, workpackage, log));
      if (!benchmark_->as_jube) take_end(args_.logs, &views->back());
    }
    return true;
  }

  int render_all(const std::vector<WorkpackageView>& views) {
    RenderOptions options;
    options.only = args_.only;
    options.select = args_.select;
    options.exclude = args_.exclude;
    options.style = args_.style;
    options.write = false;
    size_t tables = 0;
    int code = kFine;
    for (const Result& result : benchmark_->results) {
      Records records = result_records(*benchmark_, result, views, *evaluator_, diagnostics_);
      warn_of_unmatched(records, diagnostics_);
      const ResultTables shown(*benchmark_, records, *evaluator_, diagnostics_);
      std::vector<RenderedResult> rendered =
          render(*benchmark_, result, shown, options, ".", diagnostics_);
      tables += rendered.size();
      code = std::max(code, print_results(invocation_, rendered, input_->sources));
    }
    print_diagnostics(diagnostics_, input_->sources);
    if (tables == 0) {
      print_error(invocation_, "the input has no result of that name");
      return kBadInput;
    }
    return diagnostics_.has_errors() ? std::max(code, kFailed) : code;
  }

  const Invocation& invocation_;
  const ResultArgs& args_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<Input> input_;
  const Benchmark* benchmark_ = nullptr;
  const Analyse* analyse_ = nullptr;
  Diagnostics diagnostics_;
};

}  // namespace

int show_log_results(const Invocation& invocation, const ResultArgs& args) {
  return LogResults(invocation, args).show();
}

}  // namespace tally
