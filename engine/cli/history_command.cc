// tally history.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/commands.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/version.h"
#include "engine/report/grid.h"
#include "engine/report/history.h"
#include "engine/results/rows/records.h"

namespace tally {
namespace {

std::string number(double value) {
  return fmt::format("{:.6g}", value);
}

class HistoryCommand {
 public:
  HistoryCommand(const Settings& settings, const HistoryArgs& args)
      : settings_(settings), args_(args) {}

  int run() {
    std::string outpath;
    int id = -1;
    if (!find_outpath(settings_, args_.directory, &outpath, &id)) return kBadInput;
    std::vector<HistoryEntry> entries;
    if (print_if_error(settings_, read_history(outpath, &entries))) return kFailed;
    if (entries.empty())
      return bad(fmt::format("'{}' has no history", outpath),
                 "it begins with the first run whose table has a column with `statistic` or "
                 "`better` and without `relative_to`; `tally result` writes it for an earlier run");
    if (!choose(entries)) return kBadInput;
    for (auto& [point, entries_of_point] : points_) {
      series_.push_back(history_series(std::move(entries_of_point)));
      for (const HistoryPoint& one : series_.back()) changes_ += one.change ? 1 : 0;
    }
    print();
    return kFine;
  }

 private:
  int bad(const std::string& what, const std::string& hint) const {
    print_error(settings_, what, hint);
    return kBadInput;
  }

  // Keeps the entries of the metric, by benchmark, table and parameters.
  bool choose(std::vector<HistoryEntry>& entries) {
    std::vector<std::string> known;
    for (HistoryEntry& entry : entries) {
      if (!contains(known, entry.metric)) known.push_back(entry.metric);
    }
    const std::string metric = args_.metric.empty() ? known.front() : args_.metric;
    if (args_.metric.empty() && known.size() > 1) {
      bad("several metrics have a history: " + join(known, ", "), "choose one with --metric");
      return false;
    }
    if (!contains(known, metric)) {
      const std::string near = did_you_mean(metric, known);
      bad(fmt::format("--metric: '{}' has no history", metric),
          near.empty() ? "there are: " + join(known, ", ") : near);
      return false;
    }
    int noted = -1;
    for (HistoryEntry& entry : entries) {  // by run
      if (entry.metric != metric) continue;
      if (!entry.unfinished.empty() && entry.run != noted)
        fmt::print(stderr, "note: run {}: {}\n", entry.run, entry.unfinished);
      noted = entry.run;
      with_tables_ = with_tables_ ||
                     (!points_.empty() && entry.table != points_.begin()->second.front().table);
      with_parameters_ = with_parameters_ || !entry.parameters.empty();
      benchmarks_.insert(entry.benchmark);
      units_.insert(entry.unit);
      const std::string series = entry.benchmark + '\0' + entry.table + '\0' + entry.parameters;
      points_[series + '\0' + entry.unit].push_back(std::move(entry));
    }
    if (units_.size() > 1)
      fmt::print(stderr, "note: the runs give '{}' in different units; each has its own lines\n",
                 metric);
    metric_ = metric;
    return true;
  }

  static std::string change_text(const HistoryPoint& point) {
    if (!point.change) return {};
    const auto& [word, before, after] = *point.change;
    return before > 0 ? fmt::format("{} by {:.1f} %", word, 100 * std::abs(after / before - 1))
                      : word;
  }

  std::vector<std::string> cells_of(const HistoryPoint& point) const {
    const HistoryEntry& entry = point.entry;
    std::vector<std::string> cells;
    if (benchmarks_.size() > 1) cells.push_back(entry.benchmark);
    if (with_tables_) cells.push_back(entry.table);
    if (with_parameters_) cells.push_back(entry.parameters);
    if (units_.size() > 1) cells.push_back(entry.unit);
    cells.push_back(std::to_string(entry.run));
    cells.push_back(entry.start);
    cells.push_back(point.median ? number(*point.median) : "");
    cells.push_back(point.interval ? number(point.interval->low) : "");
    cells.push_back(point.interval ? number(point.interval->high) : "");
    cells.push_back(fmt::format("{} of {}", entry.sample.size(), entry.repeats));
    std::string status = entry.failed ? entry.mark : "";
    add_mark(!entry.failed && entry.busy, kBusy, &status);
    add_mark(!entry.failed && entry.throttled, kThrottled, &status);
    add_mark(!entry.failed && entry.too_short, kShort, &status);
    cells.push_back(std::move(status));
    cells.push_back(change_text(point));
    return cells;
  }

  void print() {
    if (args_.style == "json") {
      fmt::print("{}", history_json(metric_, series_, kVersion));
      return;
    }
    for (const HistorySeries& series : series_) {
      for (const HistoryPoint& point : series) grid_.rows.push_back(cells_of(point));
    }
    if (benchmarks_.size() > 1) grid_.header.emplace_back("benchmark");
    if (with_tables_) grid_.header.emplace_back("table");
    if (with_parameters_) grid_.header.emplace_back("parameters");
    if (units_.size() > 1) grid_.header.emplace_back("unit");
    const std::string& unit = *units_.begin();
    const std::string title =
        unit.empty() || units_.size() > 1 ? metric_ : metric_ + "[" + unit + "]";
    for (const std::string& name :
         {std::string("run"), std::string("start"), title, std::string("ci_low"),
          std::string("ci_high"), std::string("repeats"), std::string("status"),
          std::string("change")})
      grid_.header.push_back(name);
    if (args_.style == "markdown") {
      fmt::print("{}", markdown(grid_, false, "history"));
      return;
    }
    const bool csv = args_.style == "csv";
    fmt::print("{}", csv ? layout(grid_, "history", {})
                         : layout(for_stdout(grid_), "history", {TableStyle::pretty}));
    if (!csv)
      fmt::print("\n{} change{} of level\n", changes_ == 0 ? "no" : std::to_string(changes_),
                 changes_ == 1 ? "" : "s");
  }

  const Settings& settings_;
  const HistoryArgs& args_;
  std::string metric_;
  std::map<std::string, std::vector<HistoryEntry>> points_;
  std::set<std::string> benchmarks_, units_;  // those of the metric
  std::vector<HistorySeries> series_;
  bool with_tables_ = false, with_parameters_ = false;
  size_t changes_ = 0;
  Grid grid_;
};

}  // namespace

int history_command(const Settings& settings, const HistoryArgs& args) {
  return HistoryCommand(settings, args).run();
}

void Application::add_history() {
  CLI::App* sub = command("history", "a metric over the runs of a folder, and where it changed",
                          [this] { return history_command(settings_, history_); });
  sub->add_option("directory", history_.directory,
                  "folder of the runs, or input file; default: here")
      ->option_text("DIR");
  sub->add_option("--metric", history_.metric, "the pattern; needed if there are several")
      ->option_text("NAME");
  sub->add_option("-s,--style", history_.style, "pretty, csv, markdown or json")
      ->check(CLI::IsMember({"pretty", "csv", "markdown", "json"}))
      ->option_text("STYLE");
}

}  // namespace tally
