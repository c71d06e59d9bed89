#include "engine/cli/log_results.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "engine/base/text.h"
#include "engine/cli/input.h"
#include "engine/cli/results.h"
#include "engine/cli/views.h"
#include "engine/execute/package_values.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/substitute.h"
#include "engine/plan/plan.h"

namespace tally {
namespace {

using Packages = std::vector<WorkPackage*>;

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

bool depends_on(const Benchmark& benchmark, const Step& step, const std::string& ancestor) {
  for (const Text& parent : step.depend) {
    if (parent.value == ancestor) return true;
    const Step* found = benchmark.find_step(parent.value);
    if (found != nullptr && depends_on(benchmark, *found, ancestor)) return true;
  }
  return false;
}

// The step whose logs are meant: the analysed one that no other analysed step depends on.
const Analyse* logged_step(const Invocation& invocation, const Benchmark& benchmark) {
  std::map<std::string, const Analyse*> analysed;
  for (const Analyser& analyser : benchmark.analysers) {
    for (const Analyse& analyse : analyser.analyse) {
      analysed.try_emplace(analyse.step.value, &analyse);
    }
  }
  std::vector<std::string> last;
  for (const auto& entry : analysed) {
    const std::string& name = entry.first;
    const bool inner = std::any_of(analysed.begin(), analysed.end(), [&](const auto& other) {
      const Step* step = benchmark.find_step(other.first);
      return step != nullptr && depends_on(benchmark, *step, name);
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
std::string point_text(const WorkPackage& package, const std::set<TextId>& varying,
                       const TextPool& pool) {
  std::string text;
  for (const Binding& binding : package.point.bindings) {
    if (varying.count(binding.name) == 0) continue;
    text += fmt::format(" {}={}", pool[binding.name], pool[binding.value]);
  }
  return text;
}

void list_points(const std::string& step, const Packages& packages, const TextPool& pool) {
  std::map<TextId, std::set<TextId>> values;
  for (const WorkPackage* package : packages) {
    for (const Binding& b : package->point.bindings) values[b.name].insert(b.value);
  }
  std::set<TextId> varying;
  for (const auto& [name, different] : values) {
    if (different.size() > 1) varying.insert(name);
  }
  constexpr size_t kMost = 10;
  for (size_t i = 0; i < std::min(kMost, packages.size()); ++i) {
    std::string iteration;
    if (packages[i]->iteration > 0)
      iteration = fmt::format(" iteration {}", packages[i]->iteration);
    fmt::print(stderr, "  log {}: {}{}{}\n", i + 1, step, point_text(*packages[i], varying, pool),
               iteration);
  }
  if (packages.size() > kMost) fmt::print(stderr, "  ... and {} more\n", packages.size() - kMost);
}

bool fits(const Invocation& invocation, const std::string& step, const Packages& packages,
          const TextPool& pool, size_t logs) {
  if (packages.size() == logs) return true;
  auto counted = [](size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  print_error(invocation,
              fmt::format("{} given, but with these tags and values step '{}' has {}",
                          counted(logs, "log"), step, counted(packages.size(), "workpackage")),
              packages.empty()
                  ? "the tags or a `where:` rule leave nothing of it"
                  : "give one log a workpackage, in this order, or choose points with --tag or "
                    "--set name=value");
  list_points(step, packages, pool);
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
    std::vector<PackageView> views;
    if (!make_views(&views)) return kBadInput;
    return render_all(views);
  }

 private:
  bool make_views(std::vector<PackageView>* views) {
    RunInfo info = run_info(*benchmark_, 0, ".", "");
    TextPool pool;
    Expander expander(*benchmark_, info, *evaluator_, pool, input_->tags());
    Plan plan = make_plan(*benchmark_, expander, diagnostics_);
    if (diagnostics_.has_errors()) {
      print_diagnostics(diagnostics_, input_->sources);
      return false;
    }
    Packages packages;
    const std::string& step_name = analyse_->step.value;
    for (WorkPackage& package : plan.packages) {
      const Step& step = benchmark_->steps[static_cast<size_t>(package.step)];
      if (step.name.value == step_name) packages.push_back(&package);
    }
    if (!fits(invocation_, step_name, packages, pool, args_.logs.size())) return false;
    for (size_t i = 0; i < packages.size(); ++i) {
      const Step& step = *benchmark_->find_step(step_name);
      WorkPackage& package = *packages[i];
      PackageValues early(info, step, package, pool, expander, {}, ".", "DONE");
      std::string error = expander.finish(step, package.point, early.builtins());
      if (!error.empty()) {
        print_error(invocation_, error);
        return false;
      }
      PackageValues values(info, step, package, pool, expander, {}, ".", "DONE");
      std::string log;
      if (!log_file(invocation_, args_.logs[i], *analyse_, values.lookup(), &log)) return false;
      views->push_back(planned_view(*benchmark_, expander, pool, package, log));
    }
    return true;
  }

  int render_all(const std::vector<PackageView>& views) {
    RenderOptions options;
    options.only = args_.only;
    options.select = args_.select;
    options.exclude = args_.exclude;
    options.style = args_.style;
    options.write = false;
    size_t tables = 0;
    for (const Result& result : benchmark_->results) {
      Records records = result_records(*benchmark_, result, views, *evaluator_, diagnostics_);
      std::vector<RenderedResult> rendered =
          render(*benchmark_, result, records, options, ".", *evaluator_, diagnostics_);
      tables += rendered.size();
      print_results(rendered);
    }
    print_diagnostics(diagnostics_, input_->sources);
    if (tables == 0) {
      print_error(invocation_, "the input has no result of that name");
      return kBadInput;
    }
    return diagnostics_.has_errors() ? kFailed : kFine;
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
