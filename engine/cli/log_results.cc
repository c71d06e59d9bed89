#include "engine/cli/log_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "engine/base/text.h"
#include "engine/cli/input.h"
#include "engine/cli/prepare.h"
#include "engine/cli/show_results.h"
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
      : settings_(settings), args_(args), evaluator_(make_result_evaluator(settings)) {
    results_.diagnostics = result_diagnostics(settings);
  }

  int show() {
    const std::string& file = args_.runs.directory;
    input_ = load_input(settings_, file, args_.input);
    if (!input_->workflow) return kBadInput;
    results_.definitions = only_benchmark(settings_, *input_, file);
    if (results_.definitions == nullptr) return kBadInput;
    LogProblem problem;
    if (!log_views({*results_.definitions, *evaluator_, results_.diagnostics}, args_.logs,
                   input_->tags(), &results_.views, &problem)) {
      say(problem);
      return kBadInput;
    }
    return show_tables();
  }

 private:
  void say(const LogProblem& problem) const {
    if (results_.diagnostics.has_errors()) {
      print_diagnostics(settings_, results_.diagnostics, input_->sources);
      return;
    }
    print_error(settings_, problem.message, problem.hint);
    for (const std::string& line : problem.lines) fmt::print(stderr, "{}\n", line);
  }

  int show_tables() {
    ResultRequest request;
    request.render.only = args_.only;
    request.render.select = args_.select;
    request.render.exclude = args_.exclude;
    request.render.style = args_.style;
    results_of(settings_, request, *evaluator_, &results_);
    int code = kFine;
    for (const MadeResult& made : results_.results)
      code = std::max(code, print_results(settings_, made.outputs, input_->sources));
    const std::vector<RenderedResult> shown = results_.take_outputs();
    print_json(args_.style, {{0, "", results_.definitions->name.value}}, shown, input_->sources);
    print_diagnostics(settings_, results_.diagnostics, input_->sources);
    if (shown.empty()) {
      print_error(settings_, "the input has no result of that name");
      return kBadInput;
    }
    return results_.diagnostics.has_errors() ? std::max(code, kFailed) : code;
  }

  const Settings& settings_;
  const ResultArgs& args_;
  std::unique_ptr<Evaluator> evaluator_;
  std::shared_ptr<Input> input_;
  RunResults results_;
};

}  // namespace

int show_log_results(const Settings& settings, const ResultArgs& args) {
  return LogResults(settings, args).show();
}

}  // namespace tally
