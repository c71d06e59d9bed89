#include "engine/cli/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "engine/base/text.h"
#include "engine/report/grid.h"

namespace tally {
namespace {

constexpr size_t kBoxWidth = 70;
constexpr size_t kMostFailures = 5;
constexpr size_t kMostNotes = 5;

struct Counts {
  int all = 0, open = 0, waiting = 0, failed = 0, done = 0;
};

std::map<std::string, Counts> count_states(const Journal& journal) {
  std::map<std::string, Counts> counts;
  for (const Journal::Tally& tally : journal.states()) {
    Counts& c = counts[tally.step];
    c.all += tally.count;
    if (finished_well(tally.state)) {
      c.done += tally.count;
    } else if (tally.state == State::failed || tally.state == State::lost) {
      c.failed += tally.count;
    } else if (tally.state == State::waiting) {
      c.waiting += tally.count;
    } else {
      c.open += tally.count;
    }
  }
  return counts;
}

void print_steps(const Benchmark& benchmark, const Journal& journal) {
  std::map<std::string, Counts> counts = count_states(journal);
  std::vector<std::vector<std::string>> rows = {
      {"stepname", "all", "open", "wait", "error", "done"}};
  for (const Step& step : benchmark.steps) {
    const Counts& c = counts[step.name.value];
    rows.push_back({step.name.value, std::to_string(c.all), std::to_string(c.open),
                    std::to_string(c.waiting), std::to_string(c.failed), std::to_string(c.done)});
  }
  fmt::print("\n{}\n", bordered(rows, "  "));
}

std::string place_key(int package) {
  return fmt::format("place of {}", package);
}

void print_failures(const Journal& journal, const RunDirectory& directory) {
  size_t failures = 0;
  for (const Journal::Stored& stored : journal.packages()) {
    bool failed = stored.package.state == State::failed || stored.package.state == State::lost;
    if (!failed || ++failures > kMostFailures) continue;
    fmt::print("{} {} ({}): {}\n", state_name(stored.package.state), stored.package.id, stored.step,
               stored.package.note);
    fmt::print("       in {}/{}\n", directory.path, stored.directory);
    if (const auto at = journal.shared(place_key(stored.package.id))) {
      fmt::print("       at {}\n", *at);
    }
  }
  if (failures > kMostFailures) {
    fmt::print("       and {} more: see {}/run.log\n", failures - kMostFailures, directory.path);
  }
  if (failures != 0) fmt::print("\n");
}

// What is worth knowing of workpackages that ended well: an outcome that was expected, work taken
// over.
void print_notes(const Journal& journal, const RunDirectory& directory) {
  size_t notes = 0;
  for (const Journal::Stored& stored : journal.packages()) {
    const WorkPackage& package = stored.package;
    if (!finished_well(package.state) || package.note.empty() || ++notes > kMostNotes) continue;
    const size_t colon = package.note.find(": ");
    if (package.state == State::expected || colon == std::string::npos) {
      fmt::print("{} {} ({}): {}\n", state_name(package.state), package.id, stored.step,
                 package.note);
    } else {
      fmt::print("{} {} ({}): {}\n", package.note.substr(0, colon), package.id, stored.step,
                 package.note.substr(colon + 2));
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
  std::string text = layout(grid, TableStyle::pretty, ",", false, "");
  std::string out;
  std::istringstream lines(text.substr(text.find('\n') + 1));
  for (std::string line; std::getline(lines, line);) out += indent + line + "\n";
  return out;
}

void print_banner(const Benchmark& benchmark, const RunRecord& run, const RunDirectory& directory) {
  std::vector<std::string> lines = {"benchmark: " + benchmark.name.value,
                                    "id: " + std::to_string(run.id)};
  if (!run.tags.empty()) lines.push_back("tags: " + join(run.tags, " "));
  lines.emplace_back();
  std::istringstream comment(run.comment);
  for (std::string line; std::getline(comment, line);) lines.push_back(line);
  if (run.comment.empty()) lines.emplace_back();
  fmt::print("{}", boxed(lines));
  std::vector<std::string> steps;
  for (const Step& step : benchmark.steps) steps.push_back(step.name.value);
  if (!steps.empty()) {
    fmt::print("\nRunning {} in {}\n",
               steps.size() == 1 ? "step " + steps[0] : "steps " + join(steps, ", "),
               directory.path);
  }
  std::fflush(stdout);
}

Status keep_places(const RunSummary& summary, const Sources& sources, Journal& journal) {
  if (summary.places.empty()) return Status::ok();
  if (Status s = journal.begin(); !s) return s;
  for (const auto& [package, mark] : summary.places) {
    if (!mark.known()) continue;
    if (Status s = journal.set_shared(place_key(package), place(sources, mark)); !s) return s;
  }
  return journal.commit();
}

void print_summary(const Invocation& invocation, const Benchmark& benchmark, const Journal& journal,
                   const RunDirectory& directory, const RunSummary& summary) {
  print_steps(benchmark, journal);
  print_failures(journal, directory);
  print_notes(journal, directory);
  std::string handle = directory.path.substr(0, directory.path.rfind('/'));
  const std::string& program = invocation.program;
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
    fmt::print("Interrupted: nothing that finished is lost; `{}` goes on.\n", command("continue"));
  } else if (summary.blocked.empty() && (summary.waiting > 0 || summary.running > 0)) {
    fmt::print("{} still to come; `{}` looks again.\n",
               summary.waiting > 0 ? "Results are" : "Jobs are", command("continue"));
  }
  std::fflush(stdout);
}

}  // namespace tally
