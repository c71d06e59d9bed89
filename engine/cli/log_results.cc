#include "engine/cli/log_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "engine/base/text.h"
#include "engine/cli/input.h"
#include "engine/cli/prepare.h"
#include "engine/cli/results.h"
#include "engine/expand/evaluator.h"
#include "engine/results/read/log_views.h"

namespace tally {
namespace {

const Benchmark* only_benchmark(const Settings& settings, const Input& input,
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
    print_error(settings, fmt::format("'{}' defines no result", file));
  } else {
    print_error(settings,
                fmt::format("'{}' has {} benchmarks with results ({}); logs can be those of one",
                            file, names.size(), join(names, ", ")),
                "leave the others out with `selection:` in the file or with tags");
  }
  return nullptr;
}

class LogResults {
 public:
  LogResults(const Settings& settings, const ResultArgs& args)
      : settings_(settings),
        args_(args),
        evaluator_(make_result_evaluator(settings)),
        diagnostics_(result_diagnostics(settings)) {}

  int show() {
    const std::string& file = args_.runs.directory;
    InputArgs input = args_.input;
    input.strict = settings_.strict;
    input_ = load_input(settings_, file, input);
    if (!input_->workflow) return kBadInput;
    benchmark_ = only_benchmark(settings_, *input_, file);
    if (benchmark_ == nullptr) return kBadInput;
    std::vector<WorkpackageView> views;
    LogProblem problem;
    if (!log_views(*benchmark_, args_.logs, input_->tags(), *evaluator_, diagnostics_, &views,
                   &problem)) {
      say(problem);
      return kBadInput;
    }
    return render_all(views);
  }

 private:
  void say(const LogProblem& problem) const {
    if (diagnostics_.has_errors()) {
      print_diagnostics(settings_, diagnostics_, input_->sources);
      return;
    }
    print_error(settings_, problem.message, problem.hint);
    for (const std::string& line : problem.lines) fmt::print(stderr, "{}\n", line);
  }

  int render_all(const std::vector<WorkpackageView>& views) {
    RenderOptions options;
    options.only = args_.only;
    options.select = args_.select;
    options.exclude = args_.exclude;
    options.style = args_.style;
    options.write = false;
    size_t tables = 0;
    std::vector<RenderedResult> reported;
    int code = kFine;
    for (const Result& result : benchmark_->results) {
      Records records = result_records(*benchmark_, result, views, *evaluator_, diagnostics_);
      warn_of_unmatched(records, diagnostics_);
      const ResultTables shown(*benchmark_, records, *evaluator_, diagnostics_);
      std::vector<RenderedResult> rendered =
          render(*benchmark_, result, shown, options, ".", diagnostics_);
      tables += rendered.size();
      code = std::max(code, print_results(settings_, rendered, input_->sources));
      std::move(rendered.begin(), rendered.end(), std::back_inserter(reported));
    }
    print_json(options.style, {{0, "", benchmark_->name.value}}, reported, input_->sources);
    print_diagnostics(settings_, diagnostics_, input_->sources);
    if (tables == 0) {
      print_error(settings_, "the input has no result of that name");
      return kBadInput;
    }
    return diagnostics_.has_errors() ? std::max(code, kFailed) : code;
  }

  const Settings& settings_;
  const ResultArgs& args_;
  std::unique_ptr<Evaluator> evaluator_;
  std::shared_ptr<Input> input_;
  const Benchmark* benchmark_ = nullptr;
  Diagnostics diagnostics_;
};

}  // namespace

int show_log_results(const Settings& settings, const ResultArgs& args) {
  return LogResults(settings, args).show();
}

}  // namespace tally
