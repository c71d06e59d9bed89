#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/show_results.h"
#include "engine/cli/summary.h"
#include "engine/expand/evaluator.h"
#include "engine/results/read/views.h"

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
    if (!can_make_results(settings_, *results_.definitions, input_->sources)) return kBadInput;
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

// Expands the input file as a run would, assigns the logs to the analysed step's workpackages, in
// order, and shows the tables. Writes nothing, because there is no run. Returns an exit code.
int show_log_results(const Settings& settings, const ResultArgs& args) {
  return LogResults(settings, args).show();
}

// tally analyse, tally result.

bool open_all(const Settings& settings, const ResultArgs& args, std::vector<Run>* runs) {
  if (!args.input.set.empty()) {
    print_error(settings, "--set changes nothing here: a run keeps the values that it had",
                "`tally run` makes a run with other values; --set also goes with --logs");
    return false;
  }
  std::vector<RunDirectory> found = find_runs(settings, args.runs);
  if (found.empty()) return false;
  if (args.last > 0 && static_cast<size_t>(args.last) < found.size()) {
    found.erase(found.begin(), found.end() - args.last);
  }
  if (args.reverse) std::ranges::reverse(found);
  for (const RunDirectory& directory : found) {
    const auto run = open_results(settings, directory, args.update, args.input);
    if (!run) return false;
    runs->push_back(std::move(*run));
  }
  return true;
}

// Keeps the runs that have one of the tags of -t, as JUBE's `result` does. With -u, the tags are
// those that the file is read with.
void choose_by_tags(const ResultArgs& args, std::vector<Run>* runs) {
  const std::vector<std::string> wanted = split_tags(args.input.tags);
  if (wanted.empty() || !args.update.empty()) return;
  const auto lacks_all = [&](const Run& run) {
    const std::vector<std::string>& tags = run.journal().run().tags;
    return std::ranges::none_of(wanted,
                                [&](const std::string& tag) { return contains(tags, tag); });
  };
  std::erase_if(*runs, lacks_all);
}

// A requested or excluded column that no table has is a mistake. Without this check, an empty table
// would hide it.
bool knows_columns(const Settings& settings, std::span<const Run> runs,
                   const std::vector<std::string>& asked, const char* option) {
  std::vector<std::string> known = {"id"};
  auto collect = [&](const std::vector<Column>& columns) {
    for (const Column& column : columns) {
      known.push_back(column.name.value);
      if (!column.title.empty()) known.push_back(column.title);
    }
  };
  for (size_t i = runs.size(); i-- > 0;) {
    for (const Table* table : tables_of(runs[i].definitions())) collect(table->columns);
  }
  for (const std::string& name : asked) {
    if (contains(known, name)) continue;
    std::string hint = did_you_mean(name, known);
    if (hint.empty()) hint = "there are: " + join({known.begin() + 1, known.end()}, ", ");
    print_error(settings, fmt::format("{}: no table has a column '{}'", option, name), hint);
    return false;
  }
  return true;
}

// A user who mends a pattern and asks again would get what the run has kept, without a word.
void note_changed_file(const Settings& settings, const Run& run, const ResultArgs& args) {
  if (settings.called_as_jube || !args.update.empty() || !run.definitions().rules.values_are_kept)
    return;
  const std::string file =
      changed_source(run.definitions_input(), run.journal().run(), run.directory().path);
  if (file.empty()) return;
  const std::string& input = run.definitions_input().path;
  fmt::print(stderr,
             "note: {} has changed since; the results are made with what the run has kept. `{} "
             "result {} --id {} -u {}` makes them with today's patterns and tables; nothing runs "
             "again\n",
             file, settings.command, shell_quote(args.runs.directory), run.directory().id,
             shell_quote(input));
}

}  // namespace

int analyse_command(const Settings& settings, const ResultArgs& args) {
  std::vector<Run> runs;
  if (!open_all(settings, args, &runs)) return kBadInput;
  int code = kFine;
  for (const Run& run : runs) {
    const std::string file = run.directory().path + "/analyse.xml";
    size_t rows = 0;
    if (settings.called_as_jube) {
      fmt::print("{}>>> Start analyse\n",
                 boxed({fmt::format("Analyse benchmark \"{}\" id: {}", run.definitions().name.value,
                                    run.directory().id)}));
    }
    if (runs.size() == 1) note_changed_file(settings, run, args);
    if (!analyse_run(settings, run, &rows)) {
      code = kFailed;
      if (!settings.called_as_jube) continue;
    }
    if (settings.called_as_jube) {
      fmt::print(">>> Analyse finished\n>>> Analyse data storage: {}\n{}\n", file,
                 std::string(70, '#'));
      continue;
    }
    fmt::print("{}: {} result line{} in {}; `{} result {} --id {}` shows the tables\n",
               run.directory().path, rows, rows == 1 ? "" : "s", file, settings.command,
               shell_quote(args.runs.directory), run.directory().id);
  }
  return code;
}

namespace {

// Whether the journal has no samples of the run, as one of an earlier version, or old ones.
bool lacks_samples(const Journal& journal, const ResultArgs& args) {
  bool has = false;
  const bool asked = static_cast<bool>(journal.has_samples(&has));
  return asked && (!has || !args.update.empty());
}

}  // namespace

int result_command(const Settings& settings, const ResultArgs& args) {
  if (!args.logs.empty()) return show_log_results(settings, args);
  std::vector<Run> runs;
  if (!open_all(settings, args, &runs)) return kBadInput;
  choose_by_tags(args, &runs);
  if (runs.empty()) {
    if (settings.called_as_jube) return kFine;
    print_error(
        settings,
        fmt::format("none of the runs has the tag {}", join(split_tags(args.input.tags), " or ")),
        "-t chooses runs by their tags; with -u FILE it adds tags");
    return kBadInput;
  }
  const Benchmark& newest = runs.back().definitions();
  if (!settings.called_as_jube && (!knows_columns(settings, runs, args.select, "--select") ||
                                   !knows_columns(settings, runs, args.exclude, "--exclude"))) {
    return kBadInput;
  }
  ShowOptions options;
  options.request.render.only = args.only;
  options.request.render.select = args.select;
  options.request.render.exclude = args.exclude;
  options.request.render.style = args.style;
  std::vector<Sample> samples;
  if (runs.size() == 1 && newest.rules.values_are_kept &&
      lacks_samples(runs.front().journal(), args))
    options.samples = &samples;
  if (runs.size() == 1) note_changed_file(settings, runs.front(), args);
  const int code = show_results(settings, runs, options);
  // They are not kept if the run is in use or belongs to another person.
  (void)static_cast<bool>(runs.front().keep_samples(samples));
  return code;
}

}  // namespace tally
