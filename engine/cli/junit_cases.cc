#include "engine/cli/junit_cases.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/base/files.h"
#include "engine/base/text.h"

namespace tally {
namespace {

// The parameters in which the workpackages of a step differ.
std::map<std::string, std::set<std::string>> differing_parameters(
    const std::vector<Journal::Stored>& all) {
  std::map<std::string, std::map<std::string, std::string>> first;
  std::map<std::string, std::set<std::string>> varying;
  for (const Journal::Stored& one : all) {
    for (const auto& [name, value] : one.parameters) {
      const auto [entry, is_new] = first[one.step].try_emplace(name, value);
      if (!is_new && entry->second != value) varying[one.step].insert(name);
    }
  }
  return varying;
}

JunitCase case_of(const Benchmark& benchmark, const Journal::Stored& stored,
                  const std::set<std::string>& varying) {
  JunitCase out;
  out.classname = benchmark.name.value + "." + stored.step;
  std::string parameters;
  for (const auto& [name, value] : stored.parameters) {
    if (varying.count(name) != 0)
      parameters += (parameters.empty() ? ": " : ", ") + name + "=" + value;
  }
  out.name = fmt::format("workpackage {}{}", stored.workpackage.id, parameters);
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
  const auto shown = std::find_if(tables.begin(), tables.end(), [&](const RenderedResult& one) {
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
  if (Status s = journal.workpackages(&all); !s) return s;
  out->name = fmt::format("{} run {}", benchmark.name.value, padded_id(journal.run().id));
  out->timestamp = journal.run().start;
  const auto varying = differing_parameters(all);
  static const std::set<std::string> none;
  for (const Journal::Stored& stored : all) {
    const auto found = varying.find(stored.step);
    out->cases.push_back(case_of(benchmark, stored, found == varying.end() ? none : found->second));
  }
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      const auto* table = std::get_if<Table>(&output);
      if (table == nullptr) continue;
      for (const Reference& reference : table->references)
        out->cases.push_back(case_of(benchmark, *table, reference, tables));
    }
  }
  return Status::ok();
}

}  // namespace tally
