#include "engine/cli/summary.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/secrets.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/cli/prepare.h"
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
    if (c.all == 0 && !has_workpackages(step)) continue;
    rows.push_back({step.name.value, std::to_string(c.all), std::to_string(c.open),
                    std::to_string(c.waiting), std::to_string(c.failed), std::to_string(c.done)});
  }
  fmt::print("\n{}\n", bordered(rows, "  "));
}

// A failure in one line; by JUBE's name in JUBE's words, with its command and its folder.
std::string words_of(const Settings& settings, const Journal::Stored& stored) {
  const Outcome& outcome = stored.workpackage.outcome;
  return std::string(strip(settings.called_as_jube ? message(outcome) : message_in_short(outcome)));
}

// ", m=0, opt=-O3"
std::string shared_in_words(const EqualFailures& failure,
                            const std::vector<Journal::Stored>& workpackages) {
  std::string text;
  for (const auto& [name, value] : shared_parameters(failure, workpackages))
    text += fmt::format(", {}={}", name, value);
  return text;
}

// The file that says most of the failure, or the folder of its workpackage: as seen from here.
std::string evidence(const Journal::Stored& stored, const RunDirectory& directory) {
  if (stored.started <= 0) return {};
  const std::string file = stored.workpackage.outcome.file.str();
  const std::string folder = directory.path + "/" + stored.directory;
  if (file.empty()) return folder;
  const std::string from = absolute_path(directory.path) + "/";
  if (starts_with(file, from)) return directory.path + "/" + file.substr(from.size());
  return file.front() == '/' ? file : folder + "/work/" + file;
}

// "failed: 10 of 22 (compute, terms=0): exit code 1: no such file (pi.yaml:22:9; first:
// pi_run/000000/000002_compute/work/stderr)"
std::string failure_line(const Settings& settings, const EqualFailures& failure,
                         const std::vector<Journal::Stored>& workpackages,
                         const RunDirectory& directory) {
  const bool color = in_color(settings, STDOUT_FILENO);
  const Journal::Stored& first = *failure.all.front();
  const bool several = failure.all.size() > 1;
  std::string seen = evidence(first, directory);
  if (several && !seen.empty()) seen = "first: " + seen;
  std::string where = first.place;
  if (!seen.empty()) where += (where.empty() ? "" : "; ") + seen;
  return fmt::format(
      "{}{}{}: {} of {} ({}): {}{}\n", color ? "\033[1;31m" : "",
      state_name(first.workpackage.outcome.state), color ? "\033[0m" : "", failure.all.size(),
      workpackages.size(), literal(first.step + shared_in_words(failure, workpackages)),
      literal(words_of(settings, first)), where.empty() ? "" : " (" + literal(where) + ")");
}

// JUBE's name: its own words and several lines each.
std::string failure_lines_of_jube(const Settings& settings, const EqualFailures& failure,
                                  const RunDirectory& directory) {
  const bool color = in_color(settings, STDOUT_FILENO);
  const Journal::Stored& first = *failure.all.front();
  std::vector<std::string> ids;
  for (const Journal::Stored* stored : failure.all)
    ids.push_back(std::to_string(stored->workpackage.id));
  std::string text =
      fmt::format("{}{}{} {} ({}): {}\n", color ? "\033[1;31m" : "",
                  state_name(first.workpackage.outcome.state), color ? "\033[0m" : "",
                  join(ids, ", "), literal(first.step), literal(words_of(settings, first)));
  if (first.started > 0)
    text += fmt::format("       in {}/{}{}\n", directory.path, first.directory,
                        ids.size() == 1 ? "" : fmt::format(", the first of {}", ids.size()));
  return text + (first.place.empty() ? "" : fmt::format("       at {}\n", first.place));
}

void print_failures(const Settings& settings, const std::vector<Journal::Stored>& workpackages,
                    const RunDirectory& directory) {
  const auto words = [&](const Journal::Stored& stored) { return words_of(settings, stored); };
  const std::vector<EqualFailures> failures = equal_failures(workpackages, words, true);
  for (size_t i = 0; i < failures.size() && i < kMostFailures; ++i) {
    print_styled(stdout, settings.called_as_jube
                             ? failure_lines_of_jube(settings, failures[i], directory)
                             : failure_line(settings, failures[i], workpackages, directory));
  }
  if (failures.size() > kMostFailures) {
    fmt::print("{}and {} more: see {}/run.log\n", settings.called_as_jube ? "       " : "",
               failures.size() - kMostFailures, directory.path);
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

void print_banner(const Settings& settings, const Run& run) {
  const RunRecord& record = run.journal().run();
  if (settings.called_as_jube) {
    std::vector<std::string> lines = {"benchmark: " + run.benchmark().name.value,
                                      "id: " + std::to_string(record.id)};
    if (!record.tags.empty()) lines.push_back("tags: " + join(record.tags, " "));
    lines.emplace_back();
    std::istringstream comment(record.comment);
    for (std::string line; std::getline(comment, line);) lines.push_back(line);
    if (record.comment.empty()) lines.emplace_back();
    fmt::print("{}\n", boxed(lines));
  }
  std::vector<std::string> steps;
  for (const Step& step : run.benchmark().steps) steps.push_back(step.name.value);
  if (!steps.empty()) {
    fmt::print("Running {} in {}\n",
               steps.size() == 1 ? "step " + steps[0] : "steps " + join(steps, ", "),
               run.directory().path);
  }
  std::fflush(stdout);
}

namespace {

// The commands that make sense now, as the program was called.
class Offers {
 public:
  Offers(const Settings& settings, const RunDirectory& directory)
      : settings_(settings),
        directory_(directory),
        handle_(directory.path.substr(0, directory.path.rfind('/'))) {}

  std::string command(const char* name) const {
    return fmt::format("{} {} {} --id {}", settings_.command, name, shell_quote(handle_),
                       directory_.id);
  }

  // JUBE's words at the end of a run.
  void print_as_jube(bool complete) const {
    fmt::print(">>>> Benchmark information and further useful commands:\n");
    fmt::print(">>>>       id: {}\n>>>>   handle: {}\n>>>>      dir: {}\n", directory_.id, handle_,
               directory_.path);
    if (!complete) fmt::print(">>>> continue: {}\n", command("continue"));
    fmt::print(">>>>  analyse: {}\n>>>>   result: {}\n>>>>     info: {}\n>>>>      log: {}\n",
               command("analyse"), command("result"), command("info"), command("log"));
    fmt::print("{}\n", std::string(kBoxWidth, '#'));
  }

 private:
  const Settings& settings_;
  const RunDirectory& directory_;
  std::string handle_;
};

// Jobs that the scheduler has are followed; others are still to be submitted.
void print_jobs_left(const std::vector<Journal::Stored>& workpackages, const Offers& offers) {
  int taken = 0, open = 0;
  for (const Journal::Stored& stored : workpackages) {
    if (stored.workpackage.outcome.state != State::running) continue;
    stored.job_id.empty() ? ++open : ++taken;
  }
  const auto jobs = [](int count) {
    return count == 1 ? "1 job is" : fmt::format("{} jobs are", count);
  };
  if (taken > 0)
    fmt::print("{} in the scheduler's queue or running: `{}` follows {} to the table.\n",
               jobs(taken), offers.command("watch"), taken == 1 ? "it" : "them");
  if (open > 0)
    fmt::print("{} not submitted yet: `{}` submits {}.\n", jobs(open), offers.command("continue"),
               open == 1 ? "it" : "them");
}

void print_what_is_left(const Settings& settings, const RunSummary& summary, const Offers& offers,
                        const std::vector<Journal::Stored>& workpackages) {
  if (summary.interrupted)
    fmt::print("Interrupted: nothing that finished is lost; `{}` resumes the run.\n",
               offers.command("continue"));
  if (!summary.blocked.empty()) return;
  if (summary.running > 0) {
    print_jobs_left(workpackages, offers);
  } else if (summary.waiting > 0 && !summary.interrupted) {
    fmt::print("Results are still to come; `{}` looks again.\n", offers.command("continue"));
  } else if (!settings.called_as_jube && summary.open > 0 && !summary.interrupted) {
    fmt::print("{} not begun: {}\n", summary.open, offers.command("continue"));
  }
}

}  // namespace

Status print_summary(const Settings& settings, const Run& run, const RunSummary& summary) {
  const Journal& journal = run.journal();
  const RunDirectory& directory = run.directory();
  std::vector<Journal::Tally> states;
  std::vector<Journal::Stored> workpackages;
  TRY(journal.states(&states));
  TRY(journal.workpackages(&workpackages));
  if (!settings.quiet) print_steps(run.benchmark(), states);
  print_failures(settings, workpackages, directory);
  if (settings.quiet) {
    std::fflush(stdout);
    return Status::ok();
  }
  print_workpackage_notes(workpackages, directory);
  const Offers offers(settings, directory);
  if (settings.called_as_jube) {
    offers.print_as_jube(summary.exit_code() == 0);
  } else if (summary.failed > 0) {
    fmt::print("To do what failed again: {} --failed\n", offers.command("continue"));
  }
  print_what_is_left(settings, summary, offers, workpackages);
  if (!settings.called_as_jube)
    fmt::print("To see more of the run: {}\n\n", offers.command("info"));
  std::fflush(stdout);
  return Status::ok();
}

namespace {

// Equal failures have this in common. A value that could not be computed is told by its place in
// the file alone.
using FailureKey = std::tuple<State, std::string, std::string, Reason, std::string>;
FailureKey failure_key(const Journal::Stored& stored,
                       const std::function<std::string(const Journal::Stored&)>& words) {
  const Outcome& outcome = stored.workpackage.outcome;
  if (stored.started <= 0 && !stored.place.empty())
    return {outcome.state, stored.step, stored.place, Reason::value, ""};
  return {outcome.state, stored.step, stored.place, outcome.reason,
          words ? words(stored) : std::string(strip(message_in_short(outcome)))};
}

}  // namespace

std::vector<EqualFailures> equal_failures(
    const std::vector<Journal::Stored>& workpackages,
    const std::function<std::string(const Journal::Stored&)>& words, bool put_off) {
  std::vector<EqualFailures> failures;
  std::map<FailureKey, size_t> known;
  for (const Journal::Stored& stored : workpackages) {
    const Outcome& outcome = stored.workpackage.outcome;
    const bool elsewhere = outcome.state == State::pending && outcome.reason == Reason::host;
    if (!has_failed(outcome.state) && !(put_off && elsewhere)) continue;
    const auto [at, is_new] = known.try_emplace(failure_key(stored, words), failures.size());
    if (is_new) failures.emplace_back();
    failures[at->second].all.push_back(&stored);
  }
  return failures;
}

std::vector<std::pair<std::string, std::string>> shared_parameters(
    const EqualFailures& failure, const std::vector<Journal::Stored>& workpackages) {
  const Journal::Stored& first = *failure.all.front();
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& parameter : first.parameters) {
    const auto has = [&](const Journal::Stored& stored) {
      return contains(stored.parameters, parameter);
    };
    const bool shared = std::ranges::all_of(
        failure.all, [&](const Journal::Stored* stored) { return has(*stored); });
    const bool tells = std::ranges::any_of(workpackages, [&](const Journal::Stored& stored) {
      return stored.step == first.step && !has(stored);
    });
    const bool may_be_shown =
        parameter.second.find('$') == std::string::npos && !names_secret(parameter.first);
    if (shared && tells && may_be_shown) out.push_back(parameter);
  }
  return out;
}

}  // namespace tally
