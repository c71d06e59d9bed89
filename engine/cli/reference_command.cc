#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/files.h"
#include "engine/base/status.h"
#include "engine/base/text.h"
#include "engine/check/reference_page.h"
#include "engine/cli/commands.h"
#include "engine/cli/option_parsing.h"
#include "engine/cli/prepare.h"
#include "engine/cli/show_results.h"
#include "engine/read/input_files.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/table/condition.h"
#include "engine/workflow/workflow.h"

namespace tally {
namespace {

// Replaces text between two byte offsets.
struct TextEdit {
  size_t begin = 0, end = 0;
  std::string text;
};

constexpr size_t kNowhere = std::string::npos;

// The byte offset of a mark, whose columns count code points.
size_t offset_of(const std::string& text, const Mark& mark) {
  size_t at = 0;
  for (uint32_t line = 1; line < mark.line; ++line) {
    at = text.find('\n', at);
    if (at == kNowhere) return kNowhere;
    ++at;
  }
  for (uint32_t column = 1; column < mark.column && at < text.size(); ++at) {
    const bool next_is_start =
        at + 1 >= text.size() || (static_cast<unsigned char>(text[at + 1]) & 0xC0U) != 0x80U;
    if (next_is_start) ++column;
  }
  return at;
}

// A scalar in double quotes.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Finds where the scalar `value` at `mark` begins and ends, with its quotes. False if it is not
// written there as it is.
bool find_scalar(const std::string& text, const Text& value, size_t* begin, size_t* end) {
  *begin = offset_of(text, value.mark);
  if (*begin == kNowhere || *begin >= text.size() || value.value.empty()) return false;
  const char first = text[*begin];
  const bool in_quotes = first == '"' || first == '\'';
  const size_t from = *begin + (in_quotes ? 1 : 0);
  if (text.compare(from, value.value.size(), value.value) != 0) return false;
  *end = from + value.value.size();
  if (!in_quotes) return true;
  if (*end >= text.size() || text[*end] != first) return false;
  ++*end;
  return true;
}

size_t skip_blanks_back(const std::string& text, size_t at) {
  while (at > 0 && std::strchr(" \t\r\n", text[at - 1]) != nullptr) --at;
  return at;
}

// The place for the note of a reference without one, and the note's text.
TextEdit new_note(const std::string& text, size_t condition, size_t condition_end,
                  const std::string& note) {
  const size_t key = skip_blanks_back(text, condition) - 2;  // of "_:"
  const size_t before = skip_blanks_back(text, key);
  const bool flow = before > 0 && (text[before - 1] == '{' || text[before - 1] == ',');
  if (flow) return {condition_end, condition_end, ", note: " + quoted(note)};
  const size_t newline = key == 0 ? kNowhere : text.rfind('\n', key - 1);
  const size_t indentation = key - (newline == kNowhere ? 0 : newline + 1);
  const size_t line_end = std::min(text.find('\n', condition_end), text.size());
  return {line_end, line_end, "\n" + std::string(indentation, ' ') + "note: " + quoted(note)};
}

// Adds the edits that give a reference another condition and another note. `text`: the YAML file
// that it is in. An error if the reference is written in a form that cannot be edited safely: in a
// block scalar or with escapes.
Status edit_reference(const std::string& text, const Reference& reference,
                      const std::string& condition, const std::string& note,
                      std::vector<TextEdit>* edits) {
  size_t begin = 0;
  size_t end = 0;
  if (!find_scalar(text, reference.condition, &begin, &end))
    return Status::error("it is not written in one line without escapes; change it by hand");
  const size_t before = skip_blanks_back(text, begin);
  const bool is_mapping = before >= 2 && text.compare(before - 2, 2, "_:") == 0;
  if (!is_mapping) {
    edits->push_back({begin, end, "{_: " + quoted(condition) + ", note: " + quoted(note) + "}"});
    return Status::ok();
  }
  TextEdit of_note = new_note(text, begin, end, note);
  if (!reference.note.value.empty()) {
    if (!find_scalar(text, reference.note, &of_note.begin, &of_note.end))
      return Status::error("its note is not written in one line; change it by hand");
    of_note.text = quoted(note);
  }
  edits->push_back({begin, end, quoted(condition)});
  edits->push_back(std::move(of_note));
  return Status::ok();
}

// The text with all edits. They must not overlap.
std::string edited(const std::string& text, std::vector<TextEdit> edits) {
  std::ranges::stable_sort(edits,
                           [](const TextEdit& a, const TextEdit& b) { return a.begin < b.begin; });
  std::string out;
  size_t at = 0;
  for (const TextEdit& edit : edits) {
    out += text.substr(at, edit.begin - at) + edit.text;
    at = edit.end;
  }
  return out + text.substr(at);
}

// tally reference.

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
      for (const Table* table : tables_of(result)) {
        if (table->references.empty()) continue;
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
               position_text(input_->sources, reference.condition.mark), reference.column.value,
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
                 position_text(input_->sources, update.reference->condition.mark),
                 update.table->name.value, update.reference->column.value,
                 update.reference->condition.value, update.condition, update.measured);
    }
    const std::string changed = edited(text, edits);
    // A file that cannot be read any more must not replace one that can.
    const auto again = load_input_text(settings_, path_, changed, input_args_);
    if (!again->workflow) {
      print_error(settings_, "the changed file could not be read; nothing was written");
      return kFailed;
    }
    if (changed != text) {
      if (print_if_error(settings_, write_named_file(path_, changed))) return kFailed;
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
