// tally analyse, tally result.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/log_results.h"
#include "engine/cli/runs.h"
#include "engine/cli/show_results.h"
#include "engine/cli/summary.h"

namespace tally {
namespace {

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
  if (args.reverse) std::reverse(found.begin(), found.end());
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
    return std::none_of(wanted.begin(), wanted.end(), [&](const std::string& tag) {
      return std::find(tags.begin(), tags.end(), tag) != tags.end();
    });
  };
  runs->erase(std::remove_if(runs->begin(), runs->end(), lacks_all), runs->end());
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
    for (const Result& result : runs[i].definitions().results) {
      for (const auto& output : result.outputs) {
        if (const Table* table = std::get_if<Table>(&output)) collect(table->columns);
      }
    }
  }
  for (const std::string& name : asked) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string hint = did_you_mean(name, known);
    if (hint.empty()) hint = "there are: " + join({known.begin() + 1, known.end()}, ", ");
    print_error(settings, fmt::format("{}: no table has a column '{}'", option, name), hint);
    return false;
  }
  return true;
}

// Who mends a pattern and asks again would get what the run has kept, without a word.
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
