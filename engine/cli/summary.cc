#include "engine/cli/summary.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <utility>

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

// Workpackages that failed for the same reason. A value that could not be computed is reported
// once, at its place in the file, however many workpackages have it.
struct Failure {
  const Journal::Stored* first;
  std::vector<int> ids;
};

std::vector<Failure> failures_of(const std::vector<Journal::Stored>& workpackages) {
  std::vector<Failure> failures;
  std::map<std::pair<std::string, std::string>, size_t> by_value;  // step, place
  for (const Journal::Stored& stored : workpackages) {
    const State state = stored.workpackage.outcome.state;
    const bool put_off =
        state == State::pending && stored.workpackage.outcome.reason == Reason::host;
    if (!has_failed(state) && !put_off) continue;
    const int id = stored.workpackage.id;
    if (stored.started <= 0 && !stored.place.empty()) {
      const auto [known, fresh] =
          by_value.try_emplace({stored.step, stored.place}, failures.size());
      if (!fresh) {
        failures[known->second].ids.push_back(id);
        continue;
      }
    }
    failures.push_back({&stored, {id}});
  }
  return failures;
}

// Returns "1, 3, 4 and 20 more".
std::string id_list(const std::vector<int>& ids) {
  constexpr size_t kMostIds = 8;
  std::vector<std::string> shown;
  for (size_t i = 0; i < ids.size() && i < kMostIds; ++i) shown.push_back(std::to_string(ids[i]));
  std::string text = join(shown, ", ");
  if (ids.size() > kMostIds) text += fmt::format(" and {} more", ids.size() - kMostIds);
  return text;
}

void print_failures(const Settings& settings, const std::vector<Journal::Stored>& workpackages,
                    const RunDirectory& directory) {
  const bool color = in_color(settings, STDOUT_FILENO);
  const std::vector<Failure> failures = failures_of(workpackages);
  for (size_t i = 0; i < failures.size() && i < kMostFailures; ++i) {
    const Failure& failure = failures[i];
    const Journal::Stored& stored = *failure.first;
    print_styled(stdout,
                 fmt::format("{}{}{} {} ({}): {}\n", color ? "\033[1;31m" : "",
                             state_name(stored.workpackage.outcome.state), color ? "\033[0m" : "",
                             id_list(failure.ids), literal(stored.step),
                             literal(strip(message(stored.workpackage.outcome)))));
    if (stored.started > 0) fmt::print("       in {}/{}\n", directory.path, stored.directory);
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
