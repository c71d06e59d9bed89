// tally analyse, tally result.
#include <fmt/format.h>

#include <algorithm>

#include "engine/cli/commands.h"
#include "engine/cli/log_results.h"
#include "engine/cli/results.h"

namespace tally {
namespace {

bool open_all(const Invocation& invocation, const ResultArgs& args, std::vector<OpenRun>* runs) {
  std::vector<RunDirectory> found = find_runs(invocation, args.runs);
  if (found.empty()) return false;
  if (args.last > 0 && static_cast<size_t>(args.last) < found.size()) {
    found.erase(found.begin(), found.end() - args.last);
  }
  if (args.reverse) std::reverse(found.begin(), found.end());
  for (const RunDirectory& directory : found) {
    OpenRun run;
    if (!open_run(invocation, directory, args.update, args.input, &run)) return false;
    runs->push_back(std::move(run));
  }
  return true;
}

}  // namespace

int analyse_command(const Invocation& invocation, const ResultArgs& args) {
  std::vector<OpenRun> runs;
  if (!open_all(invocation, args, &runs)) return kBadInput;
  int code = kFine;
  for (const OpenRun& run : runs) {
    size_t rows = 0;
    if (!analyse_run(invocation, run, &rows)) code = kFailed;
    fmt::print("{}: {} result line{}; `{} result {} --id {}` shows the tables\n",
               run.directory.path, rows, rows == 1 ? "" : "s", invocation.program,
               args.runs.directory, run.directory.id);
  }
  return code;
}

int result_command(const Invocation& invocation, const ResultArgs& args) {
  if (!args.logs.empty()) return show_log_results(invocation, args);
  std::vector<OpenRun> runs;
  if (!open_all(invocation, args, &runs)) return kBadInput;
  ShowOptions options;
  options.render.only = args.only;
  options.render.select = args.select;
  options.render.exclude = args.exclude;
  options.render.style = args.style;
  return show_results(invocation, runs, options);
}

}  // namespace tally
