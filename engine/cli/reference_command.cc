// tally reference.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/check/json_schema.h"
#include "engine/check/reference.h"
#include "engine/cli/commands.h"
#include "engine/cli/option_parsing.h"
#include "engine/cli/prepare.h"
#include "engine/cli/reference_update.h"
#include "engine/cli/show_results.h"
#include "engine/cli/version.h"
#include "engine/read/files.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/table/condition.h"

namespace tally {
namespace {

// A reference with the condition that a run's values give it.
struct Update {
  const Table* table;
  const Reference* reference;
  std::string condition, note, measured;
};

// The person's own note, and what this command adds to it.
std::string note_of(const std::string& old, const RunRecord& run) {
  std::string kept(strip(old.substr(0, old.find("measured "))));
  if (!kept.empty() && kept.back() != ';') kept += ';';
  return fmt::format("{}{}measured {} in run {} by tally {}", kept, kept.empty() ? "" : " ",
                     run.start.substr(0, run.start.find('T')), run.id, run.version);
}

class Updater {
 public:
  Updater(const Settings& settings, const ReferenceArgs& args) : settings_(settings), args_(args) {}

  int run() {
    if (!parse_percent(args_.tolerance, &tolerance_) || tolerance_ == 0) {
      return bad(fmt::format("--tolerance: '{}' is not a percentage above 0", args_.tolerance),
                 "write it as 5% or 0.5%");
    }
    const std::vector<RunDirectory> found = find_runs(settings_, args_.runs);
    if (found.empty()) return kBadInput;
    run_ = open_results(settings_, found.back());
    if (!run_) return kBadInput;
    if (const int code = load_file(); code != kFine) return code;
    if (const int code = collect(); code != kFine) return code;
    return write();
  }

 private:
  int bad(const std::string& what, const std::string& hint = {}) const {
    print_error(settings_, what, hint);
    return kBadInput;
  }

  int load_file() {
    const RunRecord record = run_->journal().run();
    path_ = args_.file.empty() ? join_path(record.directory, record.input_file) : args_.file;
    const std::string ending = to_lower(path_.substr(std::min(path_.rfind('.'), path_.size())));
    if (ending != ".yaml" && ending != ".yml")
      return bad(fmt::format("only YAML files can be updated, not '{}'", path_));
    input_args_.tags = record.tags;
    for (const auto& [name, value] : record.set) input_args_.set.push_back(name + "=" + value);
    input_ = load_input(settings_, path_, input_args_);
    if (!input_->workflow) return kBadInput;
    benchmark_ = input_->find(record.benchmark);
    if (benchmark_ != nullptr) return kFine;
    return bad(fmt::format("'{}' has no benchmark '{}', which run {} is of", path_,
                           record.benchmark, record.id));
  }

  // The file's tables with the run's values.
  int collect() {
    std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings_);
    Diagnostics diagnostics = result_diagnostics(settings_);
    RunResults results;
    if (!read_run(settings_, *run_, *benchmark_, &results)) return kBadInput;
    const ResultContext context{*benchmark_, *evaluator, diagnostics};
    size_t references = 0;
    for (const Result& result : benchmark_->results) {
      const Records records = result_records(context, result, results.views);
      for (const auto& output : result.outputs) {
        const auto* table = std::get_if<Table>(&output);
        if (table == nullptr || table->references.empty()) continue;
        references += table->references.size();
        const ResultTable shown = ResultTables(context, records).table(*table, {});
        for (size_t i = 0; i < table->references.size(); ++i)
          take(*table, table->references[i], shown.reference_values[i]);
      }
    }
    print_diagnostics(settings_, diagnostics, input_->sources);
    if (diagnostics.has_errors()) return kFailed;
    return references == 0 ? bad(fmt::format("'{}' has no references", path_)) : kFine;
  }

  void keep(const Reference& reference, const std::string& why) {
    kept_ = true;
    fmt::print(stderr, "{}: not updated: {} {}: {}\n",
               place(input_->sources, reference.condition.mark), reference.column.value,
               reference.condition.value, why);
  }

  void take(const Table& table, const Reference& reference, const std::vector<double>& values) {
    if (values.empty())
      return keep(reference,
                  "the run has no value for it; those of rows that failed, have not ended or ended "
                  "as `expect` says do not count");
    if (input_->sources.name(reference.condition.mark.file) != path_)
      return keep(reference, "it is in an included file");
    if (!numeric_condition(reference.condition.value))
      return keep(reference, "only conditions with plain numbers can be updated");
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const std::string condition = condition_for(reference.condition.value, *low, *high, tolerance_);
    if (condition.empty()) {
      return keep(reference, *low == *high ? "an exact value is not measured"
                                           : fmt::format("its {} rows have values from {:.6g} to "
                                                         "{:.6g}; choose one by `where`",
                                                         values.size(), *low, *high));
    }
    std::string measured = fmt::format("{:.6g}", *low);
    if (*low != *high) measured += fmt::format(" to {:.6g}", *high);
    updates_.push_back({&table, &reference, condition,
                        note_of(reference.note.value, run_->journal().run()), measured});
  }

  int write() {
    const std::string& text = input_->sources.text(0);
    std::vector<TextEdit> edits;
    for (const Update& update : updates_) {
      const Status edit =
          edit_reference(text, *update.reference, update.condition, update.note, &edits);
      if (!edit) keep(*update.reference, edit.message());
      if (!edit) continue;
      fmt::print("{}: {}: {} {} becomes {} (measured: {})\n",
                 place(input_->sources, update.reference->condition.mark), update.table->name.value,
                 update.reference->column.value, update.reference->condition.value,
                 update.condition, update.measured);
    }
    const std::string changed = edited(text, edits);
    // A file that cannot be read any more must not replace one that can.
    const auto again = load_input_text(settings_, path_, changed, input_args_);
    if (!again->workflow) {
      print_error(settings_, "the changed file could not be read; nothing was written");
      return kFailed;
    }
    if (changed != text) {
      if (Status s = write_named_file(path_, changed); !s) {
        print_error(settings_, s.message());
        return kFailed;
      }
    }
    return kept_ ? kFailed : kFine;
  }

  const Settings& settings_;
  const ReferenceArgs& args_;
  double tolerance_ = 0;
  std::unique_ptr<Run> run_;
  std::string path_;
  InputArgs input_args_;
  std::shared_ptr<Input> input_;
  const Benchmark* benchmark_ = nullptr;
  std::vector<Update> updates_;
  bool kept_ = false;
};

}  // namespace

int reference_command(const Settings& settings, const ReferenceArgs& args) {
  if (args.update) return Updater(settings, args).run();
  fmt::print("{}", args.json_schema ? workflow_json_schema() : reference_markdown());
  return kFine;
}

}  // namespace tally
