// tally info, status, log, output: information about runs.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "engine/base/duration.h"
#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/summary.h"
#include "engine/report/grid.h"
#include "engine/results/read/views.h"

namespace tally {
namespace {

// Converts "2026-11-21T01:18:53" to the form that JUBE shows.
std::string shown_time(std::string stamp) {
  std::replace(stamp.begin(), stamp.end(), 'T', ' ');
  return stamp;
}

std::string shown_time(double seconds) {
  return seconds <= 0 ? "" : local_time(static_cast<std::time_t>(seconds));
}

bool selected_workpackages(const Settings& settings, const Journal& journal,
                           std::vector<Journal::Stored>* workpackages) {
  Status read = journal.workpackages(workpackages);
  if (!read) print_error(settings, read.message());
  return static_cast<bool>(read);
}

// The exit code for something that is not there. JUBE only says so.
int not_found(const Settings& settings) {
  return settings.called_as_jube ? kFine : kBadInput;
}

int list_all_runs(const Settings& settings, const InfoArgs& args) {
  std::string outpath;
  int own = -1;
  if (!find_outpath(settings, args.runs.directory, &outpath, &own)) return kBadInput;
  std::vector<std::vector<std::string>> rows = {
      {"id", "name", "started", "last change", "comment", "tags"}};
  std::vector<RunDirectory> runs;
  if (print_if_error(settings, list_runs(outpath, &runs))) return kFailed;
  for (const RunDirectory& directory : runs) {
    std::unique_ptr<Journal> journal;
    std::vector<Journal::Stored> workpackages;
    Status read = Journal::open_read_only(directory.path, &journal);
    if (read) read = journal->workpackages(&workpackages);
    if (!read) {
      print_error(settings, read.message());
      continue;
    }
    const RunRecord& run = journal->run();
    rows.push_back({std::to_string(run.id), run.benchmark, shown_time(run.start),
                    shown_time(last_change(run, workpackages)), run.comment, join(run.tags, ",")});
  }
  if (rows.size() == 1) {
    print_error(settings, fmt::format("there are no runs in '{}'", outpath));
    return not_found(settings);
  }
  fmt::print("{}{}\n", boxed({fmt::format("Benchmarks found in \"{}\":", outpath)}),
             bordered(rows, " "));
  return kFine;
}

// Prints "  Parameter sets: a, b" if there are any sets.
template <typename Sets>
void show_names(const char* what, const Sets& sets) {
  std::vector<std::string> names;
  for (const auto& [name, set] : sets) names.push_back(name);
  if (!names.empty()) fmt::print("  {:>16} {}\n", what, join(names, ", "));
}

// Prints the parts of the benchmark as they were when the run was started.
void show_parts(const Benchmark& benchmark) {
  show_names("Parameter sets:", benchmark.parameter_sets);
  show_names("File sets:", benchmark.file_sets);
  show_names("Substitute sets:", benchmark.substitute_sets);
  show_names("Pattern sets:", benchmark.pattern_sets);
  for (const Analyser& analyser : benchmark.analysers) {
    std::vector<std::string> steps;
    for (const Analyse& analyse : analyser.analyse) steps.push_back(analyse.step.value);
    fmt::print("  {:>16} {} (of {})\n", "Analyser:", analyser.name.value, join(steps, ", "));
  }
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      std::visit([](const auto& o) { fmt::print("  {:>16} {}\n", "Result:", o.name.value); },
                 output);
    }
  }
}

void print_run(const Run& run, const std::vector<Journal::Stored>& workpackages, bool has_end) {
  const RunRecord& record = run.journal().run();
  fmt::print(
      "{}",
      boxed({fmt::format("{} id:{} tags:{}", record.benchmark, record.id, join(record.tags, ",")),
             "", record.comment}));
  fmt::print("  Directory: {}\n\n    Started: {}\nLast change: {}\n\n",
             absolute_path(run.directory().path), shown_time(record.start),
             shown_time(last_change(record, workpackages)));
  struct Line {
    int work = 0, error = 0, done = 0;
    double last = 0;
  };
  std::map<std::string, Line> lines;
  bool open = workpackages.empty() && !has_end;
  for (const Journal::Stored& stored : workpackages) {
    Line& line = lines[stored.step];
    State state = stored.workpackage.outcome.state;
    bool failed = has_failed(state);
    line.work += 1;
    line.error += failed ? 1 : 0;
    line.done += finished_well(state) ? 1 : 0;
    line.last = std::max(line.last, stored.ended);
    open = open || (!failed && !finished_well(state));
  }
  std::vector<std::vector<std::string>> rows = {
      {"step name", "depends", "#work", "#error", "#done", "last finished"}};
  for (const Step& step : run.definitions().steps) {
    const Line& line = lines[step.name.value];
    std::vector<std::string> parents;
    for (const Text& parent : step.depend) parents.push_back(parent.value);
    rows.push_back({step.name.value, join(parents, ","), std::to_string(line.work),
                    std::to_string(line.error), std::to_string(line.done), shown_time(line.last)});
  }
  fmt::print("{}\n", bordered(rows, " "));
  show_parts(run.definitions());
  fmt::print("{}\n{}\n",
             open ? "\n--- Benchmark not finished! ---\n" : "\n--- Benchmark finished ---\n",
             std::string(70, '#'));
}

std::string flag(bool value) {
  return value ? "true" : "false";
}

void show_parametrization(const std::vector<const WorkpackageView*>& views, const InfoArgs& args) {
  std::vector<std::string> names;
  for (const WorkpackageView* view : views) {
    for (const auto& [name, value] : view->values) {
      if (!contains(names, name)) names.push_back(name);
    }
  }
  Grid grid;
  grid.header = names;
  grid.header.insert(grid.header.begin(), "id");
  for (const WorkpackageView* view : views) {
    std::vector<std::string> row = {std::to_string(view->id)};
    for (const std::string& name : names) {
      auto found = std::ranges::find_if(view->values,
                                        [&](const auto& entry) { return entry.first == name; });
      row.push_back(found == view->values.end() ? "" : found->second);
    }
    grid.rows.push_back(std::move(row));
  }
  if (args.csv) {
    fmt::print("{}", layout(grid, "", {TableStyle::csv, args.separator}));
    return;
  }
  grid.rows.insert(grid.rows.begin(), grid.header);
  fmt::print("{}\n", bordered(grid.rows, " "));
}

void show_step(const Run& run, const std::vector<Journal::Stored>& workpackages,
               const std::vector<WorkpackageView>& views, const std::string& step,
               const InfoArgs& args) {
  std::map<int, State> states;
  std::map<int, double> started;
  for (const Journal::Stored& stored : workpackages) {
    states[stored.workpackage.id] = stored.workpackage.outcome.state;
    started[stored.workpackage.id] = stored.started;
  }
  std::vector<const WorkpackageView*> own;
  std::set<std::string> names;
  for (const WorkpackageView& view : views) {
    bool wanted = args.workpackages.empty() || contains(args.workpackages, std::to_string(view.id));
    if (view.step != step || !wanted) continue;
    own.push_back(&view);
    for (const auto& [name, value] : view.values) names.insert(name);
  }
  if (args.parametrization || args.csv) return show_parametrization(own, args);
  fmt::print("{}Workpackages:\n",
             boxed({fmt::format("{} Step: {}", run.journal().run().benchmark, step)}));
  std::vector<std::vector<std::string>> rows = {{"id", "started?", "error?", "done?", "work_dir"}};
  for (const WorkpackageView* view : own) {
    State state = states[view->id];
    bool failed = has_failed(state);
    rows.push_back({std::to_string(view->id),
                    flag(state != State::pending || started[view->id] > 0), flag(failed),
                    flag(finished_well(state)), view->work_dir});
  }
  fmt::print("{}\nAvailable parameter:\n", bordered(rows, " "));
  std::string line;
  for (const std::string& name : names) {
    if (!line.empty() && line.size() + name.size() + 2 > 80) {
      fmt::print("{},\n", line);
      line.clear();
    }
    line += (line.empty() ? "" : ", ") + name;
  }
  fmt::print("{}\n\nParameterization:\n", line);
  for (const WorkpackageView* view : own) {
    fmt::print(" ID: {}\n", view->id);
    for (const auto& [name, value] : view->values) fmt::print("  {}: {}\n", name, value);
    fmt::print("\n");
  }
}

// Whether all requested workpackages belong to the run. Prints an error that names the first that
// does not.
bool knows_workpackages(const Settings& settings, const RunDirectory& directory,
                        const std::vector<Journal::Stored>& workpackages,
                        const std::vector<std::string>& asked) {
  for (const std::string& word : asked) {
    const bool known = std::ranges::any_of(workpackages, [&](const Journal::Stored& stored) {
      return std::to_string(stored.workpackage.id) == word;
    });
    if (known) continue;
    print_error(settings, fmt::format("run {} has no workpackage '{}'", directory.id, word),
                workpackages.empty()
                    ? "it has none yet"
                    : fmt::format("it has 0 to {}", workpackages.back().workpackage.id));
    return false;
  }
  return true;
}

// The steps of the requested workpackages.
std::vector<std::string> steps_with(const std::vector<Journal::Stored>& workpackages,
                                    const InfoArgs& args) {
  std::vector<std::string> steps;
  for (const Journal::Stored& stored : workpackages) {
    const std::string id = std::to_string(stored.workpackage.id);
    if (!contains(args.workpackages, id)) {
      continue;
    }
    if (!contains(steps, stored.step)) steps.push_back(stored.step);
  }
  return steps;
}

bool has_step(const Settings& settings, const RunDirectory& directory, const Benchmark& benchmark,
              const std::string& name) {
  if (benchmark.find_step(name) != nullptr) return true;
  std::vector<std::string> known;
  for (const Step& step : benchmark.steps) known.push_back(step.name.value);
  std::string hint = did_you_mean(name, known);
  if (hint.empty()) hint = "it has: " + join(known, ", ");
  print_error(settings, fmt::format("run {} has no step '{}'", directory.id, name), hint);
  return false;
}

}  // namespace

int info_command(const Settings& settings, const InfoArgs& args) {
  const bool details = args.with_steps || !args.steps.empty() || !args.workpackages.empty();
  if (!details && (args.parametrization || args.csv)) {
    print_error(settings, "-p and -c choose among the details of a step: add -s or -w",
                fmt::format("{} info DIR -s STEP -p", settings.command));
    return kBadInput;
  }
  bool one_run = !args.runs.ids.empty() || details;
  if (!one_run) {
    int own = -1;
    std::string outpath;
    if (!find_outpath(settings, args.runs.directory, &outpath, &own)) return kBadInput;
    if (own < 0) return list_all_runs(settings, args);
  }
  std::vector<RunDirectory> runs = find_runs(settings, args.runs);
  if (runs.empty()) return kBadInput;
  for (const RunDirectory& directory : runs) {
    const auto opened = open_results(settings, directory);
    if (!opened) return kBadInput;
    const Run& run = *opened;
    std::vector<Journal::Stored> workpackages;
    if (!selected_workpackages(settings, run.journal(), &workpackages)) return kBadInput;
    if (!knows_workpackages(settings, directory, workpackages, args.workpackages)) return kBadInput;
    if (!details) {
      bool has_end = false;
      if (print_if_error(settings, run.journal().has_end(&has_end))) return kBadInput;
      print_run(run, workpackages, has_end);
      continue;
    }
    std::vector<WorkpackageView> views;
    if (print_if_error(settings, workpackage_views(run.definitions(), run.journal(),
                                                   run.directory().path, &views, true)))
      return kBadInput;
    std::vector<std::string> steps = args.steps;
    std::vector<std::string> known;
    for (const Step& step : run.definitions().steps) known.push_back(step.name.value);
    if (steps.empty()) steps = args.workpackages.empty() ? known : steps_with(workpackages, args);
    for (const std::string& step : steps) {
      if (!has_step(settings, directory, run.definitions(), step)) {
        if (!settings.called_as_jube) return kBadInput;
        continue;
      }
      show_step(run, workpackages, views, step, args);
    }
  }
  return kFine;
}

int log_command(const Settings& settings, const LogArgs& args) {
  std::vector<RunDirectory> runs = find_runs(settings, args.runs);
  if (runs.empty()) return kBadInput;
  int code = kFine;
  for (const RunDirectory& directory : runs) {
    std::vector<std::string> paths;
    if (args.commands.empty()) {
      const std::string logs = escaped_for_matching(directory.path) + "/*.log";
      if (print_if_error(settings, matching_paths(logs, &paths))) code = kFailed;
    }
    for (const std::string& name : args.commands) {
      paths.push_back(directory.path + "/" + name + ".log");
    }
    for (const std::string& path : paths) {
      if (!may_be_there(path)) {
        const std::string name = path.substr(path.rfind('/') + 1);
        print_error(
            settings, fmt::format("run {} has no log '{}'", directory.id, name),
            fmt::format("'{} log' without -c shows those that are there", settings.command));
        code = std::max(code, not_found(settings));
        continue;
      }
      fmt::print("BenchmarkID: {} | Log: {}\n", directory.id, path);
      if (print_if_error(settings, print_file(path))) code = kFailed;
    }
  }
  return code;
}

int output_command(const Settings& settings, const OutputArgs& args) {
  std::vector<RunDirectory> runs = find_runs(settings, args.runs);
  if (runs.empty()) return kBadInput;
  int code = kFine;
  for (const RunDirectory& directory : runs) {
    const auto opened = open_results(settings, directory);
    if (!opened) return kBadInput;
    const Run& run = *opened;
    std::vector<Journal::Stored> workpackages;
    if (!selected_workpackages(settings, run.journal(), &workpackages)) return kBadInput;
    if (!knows_workpackages(settings, directory, workpackages, args.workpackages)) return kBadInput;
    for (const std::string& step : args.steps) {
      if (!has_step(settings, directory, run.definitions(), step)) return kBadInput;
    }
    for (const Journal::Stored& stored : workpackages) {
      auto in = [](const std::vector<std::string>& list, const std::string& word) {
        return list.empty() || contains(list, word);
      };
      if (!in(args.steps, stored.step) ||
          !in(args.workpackages, std::to_string(stored.workpackage.id))) {
        continue;
      }
      for (const char* name : {"stdout", "stderr"}) {
        if (!args.only.empty() && args.only != name) continue;
        const std::string path = output_of(directory, stored, name);
        if (!may_be_there(path)) continue;
        fmt::print("{}\n", absolute_path(path));
        if (!args.display) continue;
        if (print_if_error(settings, print_file(path))) code = kFailed;
        fmt::print("\n");
      }
    }
  }
  return code;
}

}  // namespace tally
