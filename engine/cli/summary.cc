#include "engine/cli/summary.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "engine/base/secrets.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/cli/input.h"
#include "engine/report/grid.h"

namespace tally {
namespace {

constexpr size_t kBoxWidth = 70;
constexpr size_t kMostFailures = 5;
constexpr size_t kMostNotes = 5;

struct Counts {
  int all = 0, open = 0, waiting = 0, failed = 0, done = 0;
};

std::map<std::string, Counts> count_states(const std::vector<Journal::Tally>& states) {
  std::map<std::string, Counts> counts;
  for (const Journal::Tally& tally : states) {
    Counts& c = counts[tally.step];
    c.all += tally.count;
    if (finished_well(tally.state)) {
      c.done += tally.count;
    } else if (has_failed(tally.state)) {
      c.failed += tally.count;
    } else if (tally.state == State::waiting) {
      c.waiting += tally.count;
    } else {
      c.open += tally.count;
    }
  }
  return counts;
}

void print_steps(const Benchmark& benchmark, const std::vector<Journal::Tally>& states) {
  std::map<std::string, Counts> counts = count_states(states);
  std::vector<std::vector<std::string>> rows = {
      {"stepname", "all", "open", "wait", "error", "done"}};
  for (const Step& step : benchmark.steps) {
    const Counts& c = counts[step.name.value];
    rows.push_back({step.name.value, std::to_string(c.all), std::to_string(c.open),
                    std::to_string(c.waiting), std::to_string(c.failed), std::to_string(c.done)});
  }
  fmt::print("\n{}\n", bordered(rows, "  "));
}

// Workpackages that failed for the same reason, with the same words: they are reported once.
struct Failure {
  std::vector<const Journal::Stored*> all;
};

// Equal failures have this in common. A value that could not be computed is told by its place in
// the file alone.
using FailureKey = std::tuple<State, std::string, std::string, Reason, int, int, std::string>;
FailureKey failure_key(const Journal::Stored& stored) {
  const Outcome& outcome = stored.workpackage.outcome;
  if (stored.started <= 0 && !stored.place.empty())
    return {outcome.state, stored.step, stored.place, Reason::value, 0, 0, ""};
  return {outcome.state,     stored.step,    stored.place,        outcome.reason,
          outcome.exit_code, outcome.signal, outcome.detail.str()};
}

std::vector<Failure> failures_of(const std::vector<Journal::Stored>& workpackages) {
  std::vector<Failure> failures;
  std::map<FailureKey, size_t> known;
  for (const Journal::Stored& stored : workpackages) {
    const State state = stored.workpackage.outcome.state;
    const bool put_off =
        state == State::pending && stored.workpackage.outcome.reason == Reason::host;
    if (!has_failed(state) && !put_off) continue;
    const auto [at, is_new] = known.try_emplace(failure_key(stored), failures.size());
    if (is_new) failures.emplace_back();
    failures[at->second].all.push_back(&stored);
  }
  return failures;
}

// ", m=0, opt=-O3": the parameters that the failures share and other workpackages of their step
// have otherwise. They most often say what is wrong.
std::string shared_parameters(const Failure& failure,
                              const std::vector<Journal::Stored>& workpackages) {
  const Journal::Stored& first = *failure.all.front();
  std::string text;
  for (const auto& parameter : first.parameters) {
    const auto has = [&](const Journal::Stored& stored) {
      return std::find(stored.parameters.begin(), stored.parameters.end(), parameter) !=
             stored.parameters.end();
    };
    const bool shared = std::all_of(failure.all.begin(), failure.all.end(),
                                    [&](const Journal::Stored* stored) { return has(*stored); });
    const bool tells = std::any_of(
        workpackages.begin(), workpackages.end(),
        [&](const Journal::Stored& stored) { return stored.step == first.step && !has(stored); });
    const bool may_be_shown =
        parameter.second.find('$') == std::string::npos && !names_secret(parameter.first);
    if (shared && tells && may_be_shown)
      text += fmt::format(", {}={}", parameter.first, parameter.second);
  }
  return text;
}

// Returns "1, 3, 4 and 20 more".
std::string id_list(const Failure& failure) {
  constexpr size_t kMostIds = 8;
  std::vector<std::string> shown;
  for (size_t i = 0; i < failure.all.size() && i < kMostIds; ++i)
    shown.push_back(std::to_string(failure.all[i]->workpackage.id));
  std::string text = join(shown, ", ");
  if (failure.all.size() > kMostIds)
    text += fmt::format(" and {} more", failure.all.size() - kMostIds);
  return text;
}

void print_failures(const Settings& settings, const std::vector<Journal::Stored>& workpackages,
                    const RunDirectory& directory) {
  const bool color = in_color(settings, STDOUT_FILENO);
  const std::vector<Failure> failures = failures_of(workpackages);
  for (size_t i = 0; i < failures.size() && i < kMostFailures; ++i) {
    const Failure& failure = failures[i];
    const Journal::Stored& stored = *failure.all.front();
    const bool several = failure.all.size() > 1;
    const std::string which = several ? shared_parameters(failure, workpackages) : "";
    print_styled(stdout,
                 fmt::format("{}{}{} {} ({}): {}\n", color ? "\033[1;31m" : "",
                             state_name(stored.workpackage.outcome.state), color ? "\033[0m" : "",
                             id_list(failure), literal(stored.step + which),
                             literal(strip(message(stored.workpackage.outcome)))));
    if (stored.started > 0)
      fmt::print("       in {}/{}{}\n", directory.path, stored.directory,
                 several ? fmt::format(", the first of {}", failure.all.size()) : "");
    if (!stored.place.empty()) fmt::print("       at {}\n", stored.place);
  }
  if (failures.size() > kMostFailures) {
    fmt::print("       and {} more: see {}/run.log\n", failures.size() - kMostFailures,
               directory.path);
  }
  if (!failures.empty()) fmt::print("\n");
}

// Prints notes about successful workpackages: expected outcomes and reused work.
void print_workpackage_notes(const std::vector<Journal::Stored>& workpackages,
                             const RunDirectory& directory) {
  size_t notes = 0;
  for (const Journal::Stored& stored : workpackages) {
    const Workpackage& workpackage = stored.workpackage;
    const Outcome& outcome = workpackage.outcome;
    if (!finished_well(outcome.state) || outcome.reason == Reason::none) continue;
    if (++notes > kMostNotes) continue;
    if (outcome.reason == Reason::reused) {
      fmt::print("reused {} ({}): {}\n", workpackage.id, stored.step, grounds_of_reuse(outcome));
    } else {
      fmt::print("{} {} ({}): {}\n", state_name(outcome.state), workpackage.id, stored.step,
                 message(outcome));
    }
  }
  if (notes > kMostNotes) {
    fmt::print("and {} more: see {}/run.log\n", notes - kMostNotes, directory.path);
  }
  if (notes != 0) fmt::print("\n");
}

}  // namespace

std::string boxed(const std::vector<std::string>& lines) {
  std::string rule(kBoxWidth, '#');
  std::string out = rule + "\n";
  for (const std::string& line : lines) {
    out += line.empty() ? "#\n" : "# " + line + "\n";
  }
  return out + rule + "\n";
}

std::string bordered(const std::vector<std::vector<std::string>>& rows, const std::string& indent) {
  if (rows.empty()) return {};
  Grid grid{rows.front(), {rows.begin() + 1, rows.end()}, {}};
  std::string text = layout(for_stdout(std::move(grid)), "", {TableStyle::pretty});
  std::string out;
  std::istringstream lines(text.substr(text.find('\n') + 1));
  for (std::string line; std::getline(lines, line);) out += indent + line + "\n";
  return out;
}

void print_banner(const Run& run) {
  const RunRecord& record = run.journal().run();
  std::vector<std::string> lines = {"benchmark: " + run.benchmark().name.value,
                                    "id: " + std::to_string(record.id)};
  if (!record.tags.empty()) lines.push_back("tags: " + join(record.tags, " "));
  lines.emplace_back();
  std::istringstream comment(record.comment);
  for (std::string line; std::getline(comment, line);) lines.push_back(line);
  if (record.comment.empty()) lines.emplace_back();
  fmt::print("{}", boxed(lines));
  std::vector<std::string> steps;
  for (const Step& step : run.benchmark().steps) steps.push_back(step.name.value);
  if (!steps.empty()) {
    fmt::print("\nRunning {} in {}\n",
               steps.size() == 1 ? "step " + steps[0] : "steps " + join(steps, ", "),
               run.directory().path);
  }
  std::fflush(stdout);
}

Status print_summary(const Settings& settings, const Run& run, const RunSummary& summary) {
  const Journal& journal = run.journal();
  const RunDirectory& directory = run.directory();
  std::vector<Journal::Tally> states;
  std::vector<Journal::Stored> workpackages;
  if (Status s = journal.states(&states); !s) return s;
  if (Status s = journal.workpackages(&workpackages); !s) return s;
  if (!settings.quiet) print_steps(run.benchmark(), states);
  print_failures(settings, workpackages, directory);
  if (settings.quiet) {
    std::fflush(stdout);
    return Status::ok();
  }
  print_workpackage_notes(workpackages, directory);
  std::string handle = directory.path.substr(0, directory.path.rfind('/'));
  const std::string& program = settings.program;
  auto command = [&](const char* name) {
    return fmt::format("{} {} {} --id {}", program, name, shell_quote(handle), directory.id);
  };
  fmt::print(">>>> Benchmark information and further useful commands:\n");
  fmt::print(">>>>       id: {}\n>>>>   handle: {}\n>>>>      dir: {}\n", directory.id, handle,
             directory.path);
  if (summary.exit_code() != 0) fmt::print(">>>> continue: {}\n", command("continue"));
  fmt::print(">>>>  analyse: {}\n>>>>   result: {}\n>>>>     info: {}\n>>>>      log: {}\n",
             command("analyse"), command("result"), command("info"), command("log"));
  fmt::print("{}\n", std::string(kBoxWidth, '#'));
  if (summary.interrupted) {
    fmt::print("Interrupted: nothing that finished is lost; `{}` resumes the run.\n",
               command("continue"));
  } else if (summary.blocked.empty() && (summary.waiting > 0 || summary.running > 0)) {
    fmt::print("{} still to come; `{}` looks again.\n",
               summary.waiting > 0 ? "Results are" : "Jobs are", command("continue"));
  }
  std::fflush(stdout);
  return Status::ok();
}

}  // namespace tally
