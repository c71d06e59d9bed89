#include "engine/cli/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/execution.h"
#include "engine/cli/prepare.h"
#include "engine/cli/removal.h"
#include "engine/cli/runs.h"
#include "engine/energy/gpu_devices.h"
#include "engine/evidence/tables.h"
#include "engine/execute/machine_facts.h"
#include "engine/journal/archived_copy.h"
#include "engine/report/run_results.h"
#include "engine/results/judge/compare.h"
#include "engine/results/table/columns.h"
#include "engine/statistics/comparison.h"
#include "engine/workpackage/outcome.h"

namespace tally {
namespace {

using statistics::Verdict;

// Whether the machine is another one if this fact differs. Others (the kernel, compilers) may have
// been brought up to date; they are named.
bool is_of_hardware(const std::string& fact) {
  for (const char* name : {"Host", "Architecture", "CPU", "Memory", "GPUs"})
    if (fact == name) return true;
  return false;
}

class Replay {
 public:
  Replay(const Settings& settings, const ReplayRequest& request)
      : settings_(settings), request_(request) {}

  int run() {
    std::unique_ptr<Run> base;
    if (print_if_error(settings_, open_archived(settings_, request_.folder, &base))) return kFailed;
    if (!is_same_machine(*base)) return kFailed;
    if (print_if_error(settings_, base->journal().workpackages(&workpackages_))) return kFailed;
    choose();
    if (chosen_.empty()) return none("no workpackage has ended well");
    // The engine would go on with what is left.
    RunResults results;
    if (print_if_error(settings_,
                       read_workpackages(settings_, *base, base->definitions(), &results)))
      return kFailed;
    if (!results.unfinished.empty()) return none("the run had not ended: " + results.unfinished);
    if (const std::string why = cannot_run(base->benchmark()); !why.empty()) return none(why);
    copy_ = request_.work + "/" + padded_id(base->journal().run().id);
    for (const std::set<int>& generation : generations())
      if (!run_again(generation)) return none("a workpackage did not end well");
    std::unique_ptr<Run> again;
    if (print_if_error(settings_, open_archived(settings_, copy_, &again))) return kFailed;
    return compare(*base, *again);
  }

 private:
  int none(const std::string& why) const {
    print_error(settings_, "not run again: " + why);
    return kFailed;
  }

  bool is_same_machine(const Run& base) const {
    Journal::Facts then;
    if (print_if_error(settings_, run_facts(base.journal(), &then))) return false;
    std::unique_ptr<GpuDevices> gpus;
    const Status no_gpus = GpuDevices::open(&gpus);
    const Facts now = machine_facts(base.journal().run().home, gpus.get(),
                                    no_gpus ? std::string() : no_gpus.message());
    bool same = true;
    for (const FactDifference& one : differences(then, now)) {
      const std::string text =
          fmt::format("{}: {}; now {}", one.name, known(one.base), known(one.other));
      if (is_of_hardware(one.name)) {
        print_error(settings_, "not run again: this is another machine: " + text);
        same = false;
      } else if (one.name != "Job nodes") {
        fmt::print(stderr, "note: {}\n", text);
      }
    }
    return same;
  }
  static std::string known(const std::string& value) { return value.empty() ? "unknown" : value; }

  // The points of the last steps, in an order that the archive's digest gives; all iterations of a
  // chosen point.
  void choose() {
    std::set<int> parents;
    for (const Journal::Stored& one : workpackages_)
      parents.insert(one.workpackage.parents.begin(), one.workpackage.parents.end());
    std::map<std::string, std::vector<int>> points;
    for (const Journal::Stored& one : workpackages_) {
      if (one.workpackage.outcome.state != State::done || parents.count(one.workpackage.id) != 0)
        continue;
      std::string key = request_.seed + "\n" + one.step;
      for (const auto& [name, value] : one.parameters) key += "\n" + name + "=" + value;
      points[sha256_of(key)].push_back(one.workpackage.id);
    }
    points_ = points.size();
    const auto wanted =
        static_cast<size_t>(std::ceil(request_.share * static_cast<double>(points_)));
    for (const auto& [key, ids] : points) {
      if (taken_ == std::max<size_t>(wanted, 1)) break;
      ++taken_;
      chosen_.insert(ids.begin(), ids.end());
    }
  }

  // A folder of its own outside of the run is that of the first run, which is to stay as it is.
  std::string cannot_run(const Benchmark& benchmark) const {
    for (const Step& step : benchmark.steps)
      if (!step.work_dir.value.empty())
        return fmt::format("step '{}' has a work_dir outside of the run", step.name.value);
    return {};
  }

  // The chosen workpackages, and before them what they were made from: parents first.
  std::vector<std::set<int>> generations() const {
    std::map<int, const Journal::Stored*> by_id;
    for (const Journal::Stored& one : workpackages_) by_id[one.workpackage.id] = &one;
    std::map<int, size_t> height;  // how many generations follow
    for (const int id : chosen_) height[id] = 0;
    // Parents have lower ids.
    for (auto one = by_id.rbegin(); one != by_id.rend(); ++one) {
      const auto found = height.find(one->first);
      if (found == height.end()) continue;
      for (const int parent : one->second->workpackage.parents)
        height[parent] = std::max(height[parent], found->second + 1);
    }
    size_t most = 0;
    for (const auto& [id, count] : height) most = std::max(most, count);
    std::vector<std::set<int>> all(most + 1);
    for (const auto& [id, count] : height) all[most - count].insert(id);
    return all;
  }

  // The run of an archive goes on with these workpackages alone: all others have ended.
  bool run_again(const std::set<int>& ids) {
    if (!copied_ && print_if_error(settings_, copy_run())) return false;
    copied_ = true;
    Settings own = settings_;
    own.fresh = true;
    own.hide_animation = own.quiet = true;
    std::unique_ptr<Run> run = open_run(own, {0, copy_}, Run::Access::write);
    if (!run) return false;
    for (const Journal::Stored& one : workpackages_) {
      if (ids.count(one.workpackage.id) == 0) continue;
      Status reset = run->journal().reset(one.workpackage.id);
      if (reset) reset = remove_tree(copy_ + "/" + one.directory);
      if (print_if_error(settings_, reset)) return false;
    }
    // Its exit code is also that of workpackages that failed in the first run.
    execute_part(own, *run);
    std::vector<Journal::Stored> now;
    if (print_if_error(settings_, run->journal().workpackages(&now))) return false;
    return std::ranges::all_of(now, [&](const Journal::Stored& one) {
      return ids.count(one.workpackage.id) == 0 || finished_well(one.workpackage.outcome.state);
    });
  }

  Status copy_run() const {
    std::error_code error;
    std::filesystem::copy(request_.folder, copy_, std::filesystem::copy_options::recursive, error);
    if (error) return Status::error(copy_ + ": " + error.message(), error.value());
    return forget_origin(copy_ + "/journal.sqlite");
  }

  std::vector<ResultTable> tables_of(const Run& run, bool* good) const {
    RunResults results;
    *good =
        !print_if_error(settings_, read_workpackages(settings_, run, run.definitions(), &results));
    return *good ? metric_values(settings_, &results) : std::vector<ResultTable>();
  }

  struct Compared {
    std::string what;
    bool lower_is_better;
  };

  int compare(const Run& base, const Run& again) const {
    bool good = true, good_again = true;
    const std::vector<ResultTable> before = tables_of(base, &good);
    const std::vector<ResultTable> after = tables_of(again, &good_again);
    if (!good || !good_again || before.size() != after.size()) return kFailed;
    std::vector<Compared> names;
    std::vector<statistics::Comparison> values;
    for (size_t i = 0; i < before.size(); ++i) add(before[i], after[i], &names, &values);
    if (values.empty()) add_all_numbers(base, again, &names, &values);
    if (values.empty()) return none("no number is in the rows that were chosen");
    std::vector<bool> lower;
    for (const Compared& one : names) lower.push_back(one.lower_is_better);
    statistics::decide(values, lower, request_.threshold);
    size_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) wrong += say(names[i].what, values[i]) ? 0 : 1;
    fmt::print("{} of {} points run again: {} of {} values agree\n", taken_, points_,
               values.size() - wrong, values.size());
    return wrong == 0 ? kFine : kReferenceMissed;
  }

  // The rows of one workpackage in both tables: its number is the same.
  void add(const ResultTable& before, const ResultTable& after, std::vector<Compared>* names,
           std::vector<statistics::Comparison>* values) const {
    std::map<int, const Record*> rows;
    for (const Record& row : after.rows) rows[row.id] = &row;
    for (const Record& row : before.rows) {
      const auto found = rows.find(row.id);
      if (chosen_.count(row.id) == 0 || found == rows.end()) continue;
      for (const TableColumn& column : before.columns) {
        if (column.better == Better::unknown) continue;
        const auto then = row.summaries.find(column.info.name);
        const auto now = found->second->summaries.find(column.info.name);
        if (then == row.summaries.end() || now == found->second->summaries.end()) continue;
        if (then->second.sample.empty() || now->second.sample.empty()) continue;
        names->push_back({fmt::format("workpackage {}: {}", row.id, column.info.title),
                          column.better == Better::lower});
        values->push_back(statistics::compare(then->second.sample, now->second.sample,
                                              static_cast<uint64_t>(row.id)));
      }
    }
  }

  // No column says which direction is better: all measured numbers count, as single values.
  void add_all_numbers(const Run& base, const Run& again, std::vector<Compared>* names,
                       std::vector<statistics::Comparison>* values) const {
    std::set<std::string> given;
    for (const Parameter& one : all_parameters(base.definitions())) given.insert(one.name.value);
    const std::vector<RenderedResult> before = all_tables(base), after = all_tables(again);
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      std::map<int, const Record*> rows;
      for (const Record& row : after[i].table.rows) rows[row.id] = &row;
      for (const Record& row : before[i].table.rows) {
        if (chosen_.count(row.id) == 0 || rows.count(row.id) == 0) continue;
        for (const TableColumn& column : before[i].table.columns) {
          const std::string& name = column.info.name;
          const Value &then = row.values.at(name), &now = rows[row.id]->values.at(name);
          const bool own = column.info.kind == ColumnKind::own;
          if (own || !column.info.numeric() || given.count(name) != 0 || starts_with(name, "jube_"))
            continue;
          if (then.none() || now.none()) continue;
          names->push_back({fmt::format("workpackage {}: {}", row.id, column.info.title), false});
          values->push_back(statistics::compare({then.as_double()}, {now.as_double()},
                                                static_cast<uint64_t>(row.id)));
        }
      }
    }
  }

  std::vector<RenderedResult> all_tables(const Run& run) const {
    RunResults results;
    if (print_if_error(settings_, read_workpackages(settings_, run, run.definitions(), &results)))
      return {};
    ResultRequest request;
    request.write = request.warn = false;
    results_of(settings_, request, *make_result_evaluator(settings_), &results);
    return results.take_outputs();
  }

  // Whether the values agree. No test tells fewer than four a side apart: their medians count.
  bool say(const std::string& what, const statistics::Comparison& one) const {
    const bool tested = std::min(one.n, one.m) >= statistics::kFewestToCompare;
    const bool agrees = tested ? one.verdict == Verdict::same || one.verdict == Verdict::unclear
                               : std::abs(one.change) <= request_.threshold;
    std::string how = fmt::format("{:+.1f} %", 100 * one.change);
    if (tested && one.interval)
      how += fmt::format(" ({:+.1f} to {:+.1f}, p = {:.3f}, {} and {} values)",
                         100 * one.interval->low, 100 * one.interval->high, one.adjusted_p, one.n,
                         one.m);
    if (!tested) how += fmt::format(" ({} and {} values: too few for a test)", one.n, one.m);
    fmt::print("{}: {:.6g}, again {:.6g}: {}: {}\n", what, one.base, one.other, how,
               !agrees                                     ? "does not agree"
               : tested && one.verdict == Verdict::unclear ? "no difference is shown"
                                                           : "agrees");
    return agrees;
  }

  const Settings& settings_;
  const ReplayRequest& request_;
  std::vector<Journal::Stored> workpackages_;
  std::set<int> chosen_;
  size_t points_ = 0, taken_ = 0;
  std::string copy_;
  bool copied_ = false;
};

}  // namespace

int replay(const Settings& settings, const ReplayRequest& request) {
  return Replay(settings, request).run();
}

}  // namespace tally
