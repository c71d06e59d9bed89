// tally compare.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <future>
#include <iterator>
#include <limits>
#include <system_error>

#include "engine/base/files.h"
#include "engine/base/in_thread.h"
#include "engine/base/text.h"
#include "engine/cli/commands.h"
#include "engine/cli/option_parsing.h"
#include "engine/cli/prepare.h"
#include "engine/cli/runs.h"
#include "engine/cli/show_results.h"
#include "engine/cli/version.h"
#include "engine/execute/machine_facts.h"
#include "engine/report/comparison_report.h"
#include "engine/report/json.h"
#include "engine/report/run_results.h"
#include "engine/results/judge/compare.h"
#include "engine/results/judge/definition_changes.h"
#include "engine/results/rows/point_key.h"
#include "engine/results/table/columns.h"
#include "engine/workflow/column_order.h"
#include "engine/workflow/table_names.h"

namespace tally {
namespace {

using statistics::Verdict;

class CompareCommand {
 public:
  CompareCommand(const Settings& settings, const CompareArgs& args)
      : settings_(settings), args_(args) {}

  int run() {
    if (!choose_runs() || !read_options() || !open_runs() || !choose_metrics() ||
        !can_be_compared())
      return kBadInput;
    if (print_if_error(settings_, read_machines())) return kFailed;
    work_from_ = differences_.size();
    if (args_.null_comparison) return compare_each_with_itself();
    add_work_changes();
    std::vector<TablePair> tables;
    if (!make_tables(runs_.front(), runs_.back(), &tables)) return kFailed;
    if (!stored_path_.empty() && !take_stored(&tables)) return kBadInput;
    RunComparison comparison;
    const Status status = words_.size() == 1
                              ? compare_by(benchmark_, tables, options_, seed(), &comparison)
                              : compare_runs(benchmark_, tables, options_, seed(), &comparison);
    print_diagnostics(settings_, diagnostics_, runs_.back().sources());
    if (!status) {
      print_error(settings_, status.message());
      return kBadInput;
    }
    release(tables);
    show(comparison);
    return diagnostics_.has_errors() ? std::max(kFailed, code_of(comparison)) : code_of(comparison);
  }

 private:
  bool read_options() {
    const size_t runs = words_.size();
    options_.by = args_.by;
    if (!parse_percent(args_.threshold, &options_.threshold)) {
      return bad(fmt::format("--threshold: '{}' is not a percentage", args_.threshold),
                 "write it as 2% or 0.5%");
    }
    if (args_.null_comparison && !args_.by.empty())
      return bad("--null compares each run with itself, so that --by means nothing",
                 "leave out --by");
    if (args_.null_comparison && runs > 1 && args_.style == "json")
      return bad("--null with -s json takes one run", "name the runs one by one");
    if (runs == 2 || (runs == 1 && (args_.null_comparison || !args_.by.empty()))) return true;
    return bad(runs == 1 ? "one run alone needs --by PARAMETER or --null"
                         : fmt::format("two runs are compared, not {}", runs),
               last_two());
  }

  // The words that name the runs: those of the command line, or the runs of -i in one folder.
  bool choose_runs() {
    words_ = args_.runs;
    if (args_.ids.empty()) return true;
    if (words_.size() > 1)
      return bad("-i chooses runs of one folder, and several are named", "leave out -i");
    const std::string folder = words_.empty() ? "." : words_.front();
    words_.clear();
    for (const std::string& id : args_.ids) {
      const std::vector<RunDirectory> found = find_runs(settings_, {folder, {id}});
      if (found.empty()) return false;
      for (const RunDirectory& one : found) words_.push_back(one.path);
    }
    return true;
  }

  // The command that compares the last two runs of the folder that is named.
  std::string last_two() const {
    const std::string of_any = settings_.command + " compare OUTPATH/000003 OUTPATH/000007";
    std::string outpath;
    int own = -1;
    std::vector<RunDirectory> all;
    std::error_code ignored;
    if (words_.size() != 1 || !std::filesystem::is_directory(words_.front(), ignored) ||
        !find_outpath(settings_, words_.front(), &outpath, &own) || !list_runs(outpath, &all) ||
        all.size() < 2)
      return of_any;
    return fmt::format("{} compare {} {}", settings_.command, shell_quote(all[all.size() - 2].path),
                       shell_quote(all.back().path));
  }

  bool open_runs() {
    for (const std::string& word : words_) {
      if (is_json(word)) {
        if (words_.size() == 2 && runs_.empty() && stored_path_.empty()) {
          stored_path_ = word;
          continue;
        }
        return bad(fmt::format("'{}' stands for the first of two runs only", word),
                   "the second is a run, whose workflow says what is better");
      }
      const std::vector<RunDirectory> found = find_runs(settings_, {word, {}});
      if (found.empty()) return false;
      const auto run = open_results(settings_, found.front());
      if (!run) return false;
      runs_.push_back(std::move(*run));
    }
    const std::string first = absolute_path(runs_.front().directory().path);
    if (runs_.size() == 2 && first == absolute_path(runs_.back().directory().path) &&
        !args_.null_comparison) {
      return bad(fmt::format("both names are run {}", first),
                 "name the runs' own folders, such as OUTPATH/000003 and OUTPATH/000007");
    }
    // Both runs are read with the definitions of the second, as `analyse -u` would: an earlier
    // workflow may not say which direction is better.
    benchmark_ = runs_.back().definitions();
    if (stored_path_.empty()) return true;
    const Status read = read_stored_result(stored_path_, benchmark_, &stored_);
    if (!read) print_error(settings_, read);
    return static_cast<bool>(read);
  }

  static bool is_json(const std::string& word) {
    return is_file(word) && word.size() > 5 && word.compare(word.size() - 5, 5, ".json") == 0;
  }

  // Puts the tables of the JSON document in the first run's place.
  bool take_stored(std::vector<TablePair>* tables) {
    for (TablePair& pair : *tables) {
      pair.other = std::move(pair.base);
      pair.base = {};
      pair.base.columns = pair.other.columns;
      const auto found = stored_.tables.find(pair.name);
      if (found == stored_.tables.end())
        return bad(fmt::format("'{}' has no table '{}'", stored_path_, pair.name), "");
      for (const TableColumn& column : pair.other.columns) {
        if (!is_metric(column)) continue;
        const auto& known = found->second.columns;
        const auto before = std::ranges::find(known, column.info.name, &ColumnInfo::name);
        if (before != known.end() && before->unit != column.info.unit)
          return bad(fmt::format("'{}' has the unit '{}' in '{}' and '{}' in the run",
                                 column.name.value, before->unit, stored_path_, column.info.unit),
                     "choose another column with --metric");
      }
      pair.base.rows = std::move(found->second.rows);
      pair.joined_on = std::move(found->second.parameters);
    }
    return true;
  }

  // Reads what is known of the machines of the two runs.
  Status read_machines() {
    if (!stored_path_.empty()) reported_.push_back(stored_.run);
    for (const Run& run : runs_) {
      TRY(reported_run(run, &reported_.emplace_back()));
    }
    const Facts& base = reported_.front().machine;
    const Facts& other = reported_.back().machine;
    if (base.empty() || other.empty()) return Status::ok();  // an older run has no facts
    for (FactDifference& one : differences(base, other))
      differences_.push_back({std::move(one.name), std::move(one.base), std::move(one.other)});
    return Status::ok();
  }

  // Rows are joined on the parameters that are not derived. Whatever else was changed in the
  // workflow may be the cause of a difference.
  void add_work_changes() {
    if (runs_.size() != 2) return;
    // The input that the run was started with, also after `result -u`.
    for (WorkChange& one : work_changes(runs_.front().benchmark(), runs_.back().benchmark()))
      differences_.push_back({std::move(one.name), std::move(one.before), std::move(one.after)});
  }

  // Applies --metric and --better to the tables' columns.
  bool choose_metrics() {
    const auto is_value = [this](const std::string& name) {
      return is_match_value(benchmark_, name) || contains(parameter_order(benchmark_), name);
    };
    std::vector<std::string> known;
    size_t metrics = 0;
    bool plain = false;    // a named column is no ratio
    std::string relative;  // a column that is one, and is named or has `better`
    for (Result& result : benchmark_.results) {
      for (auto& output : result.outputs) {
        auto* table = std::get_if<Table>(&output);
        if (table == nullptr) continue;
        const auto through = ratios_read(column_order(table->columns, is_value), is_value);
        for (Column& column : table->columns) {
          known.push_back(column.name.value);
          const bool named = !args_.metric.empty() &&
                             (column.name.value == args_.metric || column.title == args_.metric);
          if (!args_.metric.empty()) {
            if (!named) column.better = Better::unknown;
            if (named && args_.better == "higher") column.better = Better::higher;
            if (named && args_.better == "lower") column.better = Better::lower;
          }
          const bool ratio = !column.relative_to.empty() || through.count(&column) != 0;
          if (ratio && (named || column.better != Better::unknown))
            relative = column.column_title();
          if (through.count(&column) != 0) column.better = Better::unknown;  // no repeat has it
          if (is_metric(column)) ++metrics;
          plain = plain || (named && !ratio);
        }
      }
    }
    if (!args_.better.empty() && args_.metric.empty())
      return bad("--better says how to judge a column: it needs --metric", "");
    if (!args_.metric.empty() && !plain && relative.empty()) {
      return bad(fmt::format("--metric: no table has a column '{}'", args_.metric),
                 did_you_mean(args_.metric, known));
    }
    if (metrics != 0) return check_by();
    return no_metric(plain ? "" : relative);
  }

  // Says why no column can be compared. `relative`: one that would be, but is a ratio to another row
  // of its own run.
  bool no_metric(const std::string& relative) const {
    const bool named = !args_.metric.empty();
    const std::string hint = fmt::format(
        "write `better: higher` or `better: lower` in the column{}, or use --metric NAME --better "
        "higher",
        relative.empty() ? "" : " that it is made of");
    if (relative.empty()) return bad("it is not known which direction is better", hint);
    return bad(fmt::format("{}'{}' is relative to another row of its own run, which is no "
                           "measurement to be compared",
                           named ? "--metric: " : "column ", named ? args_.metric : relative),
               named ? "name the column that it is made of" : hint);
  }

  // A change of another benchmark's number, or of a number in another unit, means nothing.
  bool can_be_compared() const {
    if (args_.null_comparison) return true;
    const Benchmark& base = runs_.front().definitions();
    const std::string& name = stored_path_.empty() ? base.name.value : stored_.run.benchmark;
    if (name != benchmark_.name.value)
      return bad(fmt::format("the first run is of benchmark '{}', and the second of '{}'", name,
                             benchmark_.name.value),
                 "compare two runs of one benchmark");
    for (const Result& result : benchmark_.results) {
      for (const Table* table : metric_tables(result)) {
        for (const Column& column : table->columns) {
          if (is_metric(column) && !has_same_units(base, column)) return false;
        }
      }
    }
    return true;
  }

  bool has_same_units(const Benchmark& base, const Column& column) const {
    const std::vector<UnitChange> changes = unit_changes(base, benchmark_, column);
    if (changes.empty()) return true;
    const UnitChange& one = changes.front();
    return bad(fmt::format("'{}' has the unit {} in the first run and {} in the second", one.name,
                           one.before, one.after),
               "choose another column with --metric, or run the first workflow again with the new "
               "unit");
  }

  bool check_by() const {
    if (args_.by.empty()) return true;
    std::vector<std::string> names;
    for (const Parameter& parameter : all_parameters(benchmark_))
      names.push_back(parameter.name.value);
    if (contains(names, args_.by)) return true;
    return bad(fmt::format("--by: there is no parameter '{}'", args_.by),
               did_you_mean(args_.by, names));
  }

  bool bad(const std::string& what, const std::string& hint) const {
    print_error(settings_, what, hint);
    return false;
  }

  // A run's tables with metrics, in their order.
  struct RunTables {
    std::vector<ResultTable> tables;
    Diagnostics diagnostics;
    std::string unfinished;
    Status status;
  };

  RunTables tables_of(const Run& run) const {
    RunResults results;
    const Status read = read_workpackages(settings_, run, benchmark_, &results);
    RunTables out;
    if (read) out.tables = metric_values(settings_, &results);
    out.diagnostics = std::move(results.diagnostics);
    out.unfinished = std::move(results.unfinished);
    out.status = read;
    return out;
  }

  // Reads both runs at once: they have nothing in common but the workflow.
  bool make_tables(const Run& base, const Run& other, std::vector<TablePair>* tables) {
    const bool same = &base == &other;
    std::future<RunTables> second;
    if (!same) second = in_thread([this, &other] { return tables_of(other); });
    RunTables first = tables_of(base);
    RunTables then = same ? RunTables{} : second.get();
    for (const RunTables* one : {&first, &then}) {
      diagnostics_.append(one->diagnostics);
      print_unfinished(one == &first ? base : other, one->unfinished);
      if (one->status) continue;
      print_error(settings_, one->status.message());
      return false;
    }
    size_t at = 0;
    for (const Result& result : benchmark_.results) {
      for (const Table* table : metric_tables(result)) {
        TablePair& pair = tables->emplace_back();
        pair.name = table->name.value;
        pair.base = std::move(first.tables[at]);
        if (!same) pair.other = std::move(then.tables[at]);
        pair.other.columns = pair.base.columns;
        ++at;
      }
    }
    return true;
  }

  // The output of large runs needs the memory. Freeing it takes time, too.
  static void release(std::vector<TablePair>& tables) {
    std::future<void> second = in_thread([&tables] {
      for (TablePair& pair : tables) pair.other = {};
    });
    for (TablePair& pair : tables) pair.base = {};
    second.get();
  }

  uint64_t seed() const {
    constexpr uint64_t kFar = 1000003;
    return static_cast<uint64_t>(runs_.front().directory().id) * kFar +
           static_cast<uint64_t>(runs_.back().directory().id);
  }

  int compare_each_with_itself() {
    int code = kFine;
    for (const Run& run : runs_) {
      std::vector<TablePair> tables;
      if (!make_tables(run, run, &tables)) return kFailed;
      const RunComparison comparison = compare_halves(benchmark_, tables, options_, seed());
      if (runs_.size() > 1 && args_.style != "json") fmt::print("{}:\n", run.directory().path);
      show(comparison);
      const size_t wrong =
          count(comparison, Verdict::improved) + count(comparison, Verdict::regressed);
      if (args_.style != "json")
        fmt::print("null comparison: {} of {} rows differ although nothing was changed\n", wrong,
                   comparison.rows.size());
      if (wrong != 0) code = kReferenceMissed;
    }
    print_diagnostics(settings_, diagnostics_, runs_.back().sources());
    return diagnostics_.has_errors() ? std::max(kFailed, code) : code;
  }

  // Another workflow on another platform differs in much. Its notes must not hide those of rows.
  std::vector<std::string> difference_notes() const {
    constexpr size_t kMostOfWork = 8;
    std::vector<std::string> notes;
    std::vector<std::string> further;
    const auto shown = [](const std::string& value) { return value.empty() ? "unknown" : value; };
    for (size_t i = 0; i < differences_.size(); ++i) {
      const ReportedDifference& one = differences_[i];
      if (i >= work_from_ + kMostOfWork) {
        further.push_back(one.name);
      } else {
        notes.push_back(fmt::format("the runs differ in {}: {}; {}", one.name, shown(one.base),
                                    shown(one.other)));
      }
    }
    if (!further.empty()) notes.push_back("the runs also differ in " + join(further, ", "));
    return notes;
  }

  void show(const RunComparison& comparison) const {
    constexpr size_t kMost = 20;
    const bool json = args_.style == "json";
    std::vector<std::string> notes = difference_notes();
    notes.insert(notes.end(), comparison.notes.begin(), comparison.notes.end());
    size_t left_out = 0;
    const size_t room = json ? std::numeric_limits<size_t>::max() : kMost;
    std::vector<std::string> of_rows =
        comparison_notes(comparison, json ? NotesFor::document : NotesFor::table, room, &left_out);
    std::move(of_rows.begin(), of_rows.end(), std::back_inserter(notes));
    if (json) {
      fmt::print("{}",
                 comparison_json(comparison, options_, {reported_, differences_, notes}, kVersion));
    } else {
      show_table(comparison);
    }
    std::fflush(stdout);
    for (size_t i = 0; i < notes.size() && i < kMost; ++i)
      fmt::print(stderr, "note: {}\n", notes[i]);
    const size_t all = notes.size() + left_out;
    if (all > kMost) fmt::print(stderr, "note: {} more notes\n", all - kMost);
  }

  void show_table(const RunComparison& comparison) const {
    const Grid grid = comparison_grid(comparison, options_);
    std::string text;
    if (args_.style == "markdown") {
      text = markdown(grid, false, "comparison");
    } else if (args_.style == "csv") {
      text = layout(grid, "comparison", {});
    } else {
      text = layout(for_stdout(grid), "comparison", {TableStyle::pretty});
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (args_.style != "csv") {
      fmt::print("\n{} regressed, {} improved, {} same, {} unclear, at a threshold of {}\n",
                 count(comparison, Verdict::regressed), count(comparison, Verdict::improved),
                 count(comparison, Verdict::same), count(comparison, Verdict::unclear),
                 args_.threshold);
    }
  }

  static size_t count(const RunComparison& comparison, Verdict verdict) {
    return static_cast<size_t>(std::ranges::count_if(
        comparison.rows, [&](const ComparedRow& row) { return row.result.verdict == verdict; }));
  }

  int code_of(const RunComparison& comparison) const {
    if (count(comparison, Verdict::regressed) != 0) return kReferenceMissed;
    if (settings_.strict && count(comparison, Verdict::unclear) != 0) return kReferenceMissed;
    // A row that the first run has and that failed, or has not ended, in the second is not merely
    // unclear.
    const bool failed = std::ranges::any_of(comparison.rows, [](const ComparedRow& row) {
      return row.base_measured() && !row.other_measured() && row.other_state != State::expected;
    });
    return failed || comparison.lost_rows ? kFailed : kFine;
  }

  const Settings& settings_;
  const CompareArgs& args_;
  CompareOptions options_;
  std::vector<std::string> words_;  // that name the runs
  std::vector<Run> runs_;
  std::string stored_path_;  // a JSON document in place of the first run; empty: none
  StoredResult stored_;
  Benchmark benchmark_;
  Diagnostics diagnostics_;
  std::vector<ReportedRun> reported_;
  std::vector<ReportedDifference> differences_;  // of the machines, then of the workflows
  size_t work_from_ = 0;                         // the first one of the workflows
};

}  // namespace

int compare_command(const Settings& settings, const CompareArgs& args) {
  return CompareCommand(settings, args).run();
}

}  // namespace tally
