#include "engine/cli/junit_cases.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/files.h"
#include "engine/base/secrets.h"
#include "engine/base/text.h"
#include "engine/expand/substitute.h"

namespace tally {
namespace {

// The parameters that are in names of tests: those of the workflow's own text. Parameters that are
// derived from others, a platform's and secrets are not among them. A further value of a parameter
// changes no other name.
std::set<std::string> naming_parameters(const Benchmark& benchmark) {
  std::set<std::string> names, others;
  for (const Parameter& parameter : all_parameters(benchmark)) {
    const bool plain = parameter.mode == Mode::text && !has_dollar_name(parameter.value.value) &&
                       parameter.owner != Owner::platform && !is_secret(parameter) &&
                       !names_secret(parameter.name.value);
    (plain ? names : others).insert(parameter.name.value);
  }
  for (const std::string& other : others) names.erase(other);
  return names;
}

// Whether the step has several workpackages for one point.
bool repeats(const Benchmark& benchmark, const std::string& step) {
  return std::ranges::any_of(benchmark.steps, [&](const Step& one) {
    return one.name.value == step && !one.repeat.value.empty();
  });
}

// "terms=1000000": the same for the same point in each run.
std::string name_of(const Benchmark& benchmark, const Journal::Stored& stored,
                    const std::set<std::string>& naming) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : stored.parameters)
    if (naming.count(name) != 0) parts.push_back(name + "=" + value);
  for (const Step& step : benchmark.steps) {
    if (step.name.value != stored.step) continue;
    if (step.iterations.value != "1")
      parts.push_back(fmt::format("iteration {}", stored.workpackage.iteration));
  }
  return parts.empty() ? stored.step : join(parts, ", ");
}

JunitCase case_of(const Benchmark& benchmark, const Journal::Stored& stored,
                  const std::set<std::string>& naming) {
  JunitCase out;
  out.classname = benchmark.name.value + "." + stored.step;
  out.name = name_of(benchmark, stored, naming);
  if (stored.started > 0 && stored.ended > stored.started)
    out.seconds = stored.ended - stored.started;
  const Outcome& outcome = stored.workpackage.outcome;
  if (finished_well(outcome.state)) return out;
  const std::string why = message(outcome);
  out.message = why.substr(0, why.find('\n'));
  if (has_failed(outcome.state)) {
    out.result = JunitResult::failed;
    out.details = why;
    return out;
  }
  out.result = JunitResult::skipped;
  if (out.message.empty()) out.message = state_name(outcome.state);
  return out;
}

JunitCase case_of(const Benchmark& benchmark, const Table& table, const Reference& reference,
                  const std::vector<RenderedResult>& tables) {
  JunitCase out;
  out.classname = benchmark.name.value + ".references";
  out.name =
      fmt::format("{}: {} {}", table.name.value, reference.column.value, reference.condition.value);
  if (!reference.where.value.empty()) out.name += " where " + reference.where.value;
  const auto shown = std::ranges::find_if(tables, [&](const RenderedResult& one) {
    return one.definition != nullptr && one.name == table.name.value;
  });
  if (shown == tables.end()) {
    out.result = JunitResult::failed;
    out.message = "the table could not be made";
    return out;
  }
  const Mark& mark = reference.condition.mark;
  for (const MissedReference& missed : shown->table.missed) {
    const bool here = missed.mark.file == mark.file && missed.mark.line == mark.line &&
                      missed.mark.column == mark.column;
    if (!here) continue;
    out.result = JunitResult::failed;
    if (out.message.empty()) out.message = missed.text;
    out.details += missed.text + "\n";
  }
  return out;
}

}  // namespace

Status can_write_report(const std::string& path) {
  if (path == "-") return Status::ok();
  const std::string absolute = absolute_path(path);
  struct stat info {};
  if (::stat(absolute.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
    return Status::error(fmt::format("cannot write '{}': it is a directory", path));
  if (info.st_nlink != 0 && !S_ISREG(info.st_mode)) return Status::ok();  // a device, a FIFO
  const std::string folder = absolute.substr(0, std::max<size_t>(absolute.rfind('/'), 1));
  if (::access(folder.c_str(), W_OK) == 0) return Status::ok();
  return Status::error(
      fmt::format("cannot write '{}': the folder '{}' {}", path, folder,
                  ::access(folder.c_str(), F_OK) == 0 ? "is not writable" : "does not exist"));
}

Status junit_suite(const Benchmark& benchmark, const Journal& journal,
                   const std::vector<RenderedResult>& tables, JunitSuite* out) {
  std::vector<Journal::Stored> all;
  TRY(journal.workpackages(&all));
  out->name = benchmark.name.value;
  out->timestamp = journal.run().start;
  const std::set<std::string> naming = naming_parameters(benchmark);
  std::map<std::string, int> seen;  // the rounds of `repeat`; children of repeats, too
  for (const Journal::Stored& stored : all) {
    JunitCase one = case_of(benchmark, stored, naming);
    const int number = ++seen[one.classname + "\n" + one.name];
    if (repeats(benchmark, stored.step)) {
      one.name += fmt::format(", repeat {}", number);
    } else if (number > 1) {
      one.name += fmt::format(" #{}", number);
    }
    out->cases.push_back(std::move(one));
  }
  for (const Table* table : tables_of(benchmark)) {
    for (const Reference& reference : table->references)
      out->cases.push_back(case_of(benchmark, *table, reference, tables));
  }
  return Status::ok();
}

}  // namespace tally
