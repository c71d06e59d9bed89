#include "engine/cli/results.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/path_text.h"
#include "engine/chart/from_table.h"
#include "engine/chart/svg.h"
#include "engine/cli/prepare.h"
#include "engine/cli/result_writer.h"
#include "engine/cli/run_tables.h"
#include "engine/cli/runs.h"
#include "engine/cli/version.h"
#include "engine/expand/evaluator.h"
#include "engine/jube/jube_files.h"
#include "engine/read/files.h"
#include "engine/report/history.h"
#include "engine/results/read/run_notes.h"
#include "engine/results/read/views.h"

namespace tally {
namespace {

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// Keeps the samples of a run beside the runs, for `tally history`.
int write_history(const Settings& settings, const Run& run, const ReportedRun& reported,
                  const std::vector<RenderedResult>& tables,
                  const std::vector<WorkpackageView>& views) {
  if (!run.definitions().rules.values_are_kept) return kFine;
  const std::string text =
      history_file(run.definitions(), reported, run.journal().run().start, tables, views, kVersion);
  if (text.empty()) return kFine;
  const std::string folder = reported.directory.substr(0, reported.directory.rfind('/'));
  const std::string path = history_path(folder, run.directory().id);
  Status written = make_directories(folder + "/history.d");
  if (written) written = write_file(path, text);
  if (!written) print_error(settings, written.message(), "results are shown, but not kept");
  return written ? kFine : kFailed;
}

// If a table above has reported a failure or a busy machine, only the row is marked.
void print_notes(const RenderedResult& one, std::set<std::string>* told) {
  constexpr size_t kMost = 20;
  std::set<std::string> here;
  size_t count = 0;
  for (const Note& note : one.table.notes) {
    if (note.of_run) continue;
    if (note.of_workpackage && told->count(note.text) != 0) continue;
    if (note.of_workpackage) here.insert(note.text);
    if (++count <= kMost) fmt::print(stderr, "note: {}: {}\n", one.name, note.str());
  }
  if (count > kMost) fmt::print(stderr, "note: {}: {} more notes\n", one.name, count - kMost);
  told->merge(here);
}

void print_missed(const std::string& table, const std::vector<MissedReference>& missed,
                  const char* severity, const Sources& sources) {
  constexpr size_t kMost = 100;
  for (size_t i = 0; i < missed.size() && i < kMost; ++i) {
    fmt::print(stderr, "{}: {}reference missed: {}: {}\n", place(sources, missed[i]), severity,
               table, missed[i].text);
  }
  if (missed.size() > kMost)
    fmt::print(stderr, "{}: {}{} more references missed\n", table, severity, missed.size() - kMost);
}

}  // namespace

int print_results(const Settings& settings, const std::vector<RenderedResult>& rendered,
                  const Sources& sources) {
  int code = kFine;
  std::set<std::string> told;  // notes of workpackages below the tables above
  for (const RenderedResult& one : rendered) {
    if (one.text.empty() && one.table.notes.empty() && one.table.missed.empty() &&
        one.table.warned.empty())
      continue;
    print_text(one.text + (one.has_file && !one.text.empty() ? "\n" : ""));
    std::fflush(stdout);
    print_notes(one, &told);
    print_missed(one.name, one.table.warned, "warning: ", sources);
    print_missed(one.name, one.table.missed, "", sources);
    if (!one.table.missed.empty() && !settings.called_as_jube) code = kReferenceMissed;
  }
  return code;
}

void print_json(const std::string& style, const std::vector<ReportedRun>& runs,
                const std::vector<RenderedResult>& tables, const Sources& sources) {
  if (style == "json") print_text(json_document(runs, tables, sources, kVersion));
  if (style == "jsonl") print_text(json_lines(tables));
}

void print_unfinished(const Run& run, const std::string& note) {
  if (note.empty()) return;
  fmt::print(stderr, "note: {}: {}\n", run.directory().path, note);
}

bool read_views(const Settings& settings, const Run& run, const Benchmark& definitions,
                std::vector<WorkpackageView>* views) {
  const Status read = workpackage_views(definitions, run.journal(), run.directory().path, views);
  if (!read) {
    print_error(settings, read.message());
    return false;
  }
  print_unfinished(run, unfinished_note(definitions, *views));
  return true;
}

namespace {

// Analyses with all analysers of the input and stores the results as analyse.xml. Returns the
// number of result lines.
size_t analyse_all(const Run& run, const std::vector<WorkpackageView>& views, Evaluator& evaluator,
                   Diagnostics& diagnostics, bool tell_unmatched) {
  size_t rows = 0;
  std::vector<AnalyserResult> results;
  for (const Analyser& analyser : run.definitions().analysers) {
    AnalyserResult& result = results.emplace_back();
    result.name = analyser.name.value;
    const Records records =
        analyse(run.definitions(), analyser, views, evaluator, diagnostics, &result.workpackages);
    rows += records.rows.size();
    if (tell_unmatched) warn_of_unmatched(records, diagnostics);
  }
  if (Status kept = write_analyse_xml(results, run.directory().path); !kept)
    diagnostics.error({}, kept.message());
  return rows;
}

}  // namespace

bool analyse_run(const Settings& settings, const Run& run, size_t* rows) {
  Diagnostics diagnostics = result_diagnostics(settings);
  std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings);
  note_command(run.directory().path, "analyse", "analysed");
  std::vector<WorkpackageView> views;
  if (!read_views(settings, run, run.definitions(), &views)) return false;
  *rows = analyse_all(run, views, *evaluator, diagnostics, !settings.called_as_jube);
  print_diagnostics(settings, diagnostics, run.sources());
  return !diagnostics.has_errors();
}

void keep_samples(Run& run, const std::vector<Sample>& samples) {
  const Status kept = run.keep_samples(samples);
  (void)static_cast<bool>(kept);
}

namespace {

// Analyses runs and shows and writes their results.
class Shown {
 public:
  Shown(const Settings& settings, std::span<const Run> runs, const ShowOptions& options)
      : settings_(settings),
        runs_(runs),
        options_(options),
        newest_(runs.back().definitions()),
        evaluator_(make_result_evaluator(settings)),
        writer_(settings, options),
        diagnostics_(result_diagnostics(settings)) {}

  int show() {
    if (!read_all()) return kFailed;
    if (runs_.size() == 1) {
      for (const Result& result : newest_.results) show_one(result);
    } else {
      show_each_by_its_own();
    }
    return finish();
  }

 private:
  bool read_all() {
    for (const Run& run : runs_) {
      if (!read_views(settings_, run, run.definitions(), &views_.emplace_back())) return false;
      // As in JUBE, `result` also writes the analysis. Its problems are the same as those reported
      // below.
      Diagnostics said_below;
      if (settings_.called_as_jube && options_.write)
        analyse_all(run, views_.back(), *evaluator_, said_below, false);
    }
    return true;
  }

  void print(const std::vector<RenderedResult>& rendered, const Sources& sources) {
    if (options_.print) code_ = std::max(code_, print_results(settings_, rendered, sources));
  }

  void show_one(const Result& result) {
    const Run& run = runs_.front();
    Records own = result_records(run.definitions(), result, views_.front(), *evaluator_,
                                 diagnostics_, options_.samples);
    if (!settings_.called_as_jube) warn_of_unmatched(own, diagnostics_);
    const ResultTables tables(newest_, own, *evaluator_, diagnostics_);
    std::vector<RenderedResult> rendered =
        writer_.render_and_write(run, newest_, result, tables, diagnostics_);
    outputs_ += rendered.size();
    print(rendered, run.sources());
    std::move(rendered.begin(), rendered.end(), std::back_inserter(reported_));
  }

  // Several runs: each is computed by its own definitions, and tables of one name are joined.
  void show_each_by_its_own() {
    std::vector<std::vector<RunTable>> of_runs;
    std::set<std::string> said;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const Run& run = runs_[i];
      Diagnostics diagnostics = result_diagnostics(settings_);
      std::vector<RunTable>& tables = of_runs.emplace_back();
      for (const Result& result : run.definitions().results)
        show_own(run, views_[i], result, diagnostics, tables);
      failed_ = failed_ || diagnostics.has_errors();
      print_once(settings_, diagnostics, run.sources(), &said);
    }
    if (!options_.print) return;
    std::vector<RunTable> joined;
    if (!join_tables(settings_, runs_, std::move(of_runs), options_.render, &joined))
      failed_ = true;
    for (RunTable& one : joined) reported_.push_back(std::move(one.rendered));
    print(reported_, runs_.back().sources());
  }

  void show_own(const Run& run, const std::vector<WorkpackageView>& views, const Result& result,
                Diagnostics& diagnostics, std::vector<RunTable>& tables) {
    const Records records =
        result_records(run.definitions(), result, views, *evaluator_, diagnostics);
    if (!settings_.called_as_jube) warn_of_unmatched(records, diagnostics);
    const ResultTables maker(run.definitions(), records, *evaluator_, diagnostics);
    std::vector<RenderedResult> rendered =
        writer_.render_and_write(run, run.definitions(), result, maker, diagnostics);
    outputs_ += rendered.size();
    std::vector<RenderedResult> of_one_run;
    for (RenderedResult& one : rendered) {
      const Table* table = table_of(result, one);
      if (table != nullptr) {
        tables.push_back({&result, table, std::move(one)});
      } else if (one.of_one_run) {
        of_one_run.push_back(std::move(one));
      }
    }
    print(of_one_run, run.sources());
  }

  int finish() {
    std::vector<ReportedRun> reported_runs;
    for (const Run& run : runs_) {
      Journal::Facts facts;
      if (Status s = run_facts(run.journal(), &facts); !s) diagnostics_.error({}, s.message());
      reported_runs.push_back({run.directory().id, absolute_path(run.directory().path),
                               run.definitions().name.value, std::move(facts)});
    }
    const Sources& sources = runs_.back().sources();
    const std::vector<std::string>& only = options_.render.only;
    if (options_.print && (outputs_ != 0 || only.empty()))
      print_json(options_.render.style, reported_runs, reported_, sources);
    if (options_.write && runs_.size() == 1 && only.empty())
      code_ = std::max(code_, write_history(settings_, runs_.front(), reported_runs.front(),
                                            reported_, views_.front()));
    if (options_.shown != nullptr) *options_.shown = std::move(reported_);
    print_diagnostics(settings_, diagnostics_, sources);
    if (outputs_ == 0 && options_.print) {
      if (!only.empty()) {
        print_error(settings_, "the input has no result of that name");
        return kBadInput;
      }
      if (newest_.results.empty())
        fmt::print(stderr, "{}: the input defines no result\n", settings_.program);
    }
    code_ = std::max(code_, writer_.code());
    return failed_ || diagnostics_.has_errors() ? std::max(code_, kFailed) : code_;
  }

  const Settings& settings_;
  std::span<const Run> runs_;
  const ShowOptions& options_;
  const Benchmark& newest_;
  std::unique_ptr<Evaluator> evaluator_;
  ResultWriter writer_;
  std::vector<std::vector<WorkpackageView>> views_;  // of each run
  Diagnostics diagnostics_;
  bool failed_ = false;
  int code_ = kFine;
  size_t outputs_ = 0;
  std::vector<RenderedResult> reported_;
};

}  // namespace

int show_results(const Settings& settings, std::span<const Run> runs, const ShowOptions& options) {
  return runs.empty() ? kBadInput : Shown(settings, runs, options).show();
}

}  // namespace tally
