#include "engine/cli/show_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "engine/cli/version.h"
#include "engine/jube/jube_files.h"
#include "engine/report/history.h"
#include "engine/report/joined.h"
#include "engine/report/report.h"

namespace tally {
namespace {

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

// If a table above has reported a failure or a busy machine, only the row is marked.
void print_notes(const RenderedResult& one, std::set<std::string>* told) {
  constexpr size_t kMost = 20;
  std::set<std::string> here;
  std::vector<Note> untold;
  for (const Note& note : one.table.notes) {
    if (note.of_run) continue;
    if (note.of_workpackage && told->count(note.text) != 0) continue;
    if (note.of_workpackage) here.insert(note.text);
    untold.push_back(note);
  }
  const std::vector<std::string> texts = grouped_notes(untold);
  for (size_t i = 0; i < texts.size() && i < kMost; ++i)
    fmt::print(stderr, "note: {}: {}\n", one.name, texts[i]);
  if (texts.size() > kMost)
    fmt::print(stderr, "note: {}: {} more notes\n", one.name, texts.size() - kMost);
  told->merge(here);
}

void print_missed(const std::string& table, const std::vector<MissedReference>& missed,
                  const char* severity, const Sources& sources) {
  constexpr size_t kMost = 100;
  for (size_t i = 0; i < missed.size() && i < kMost; ++i) {
    fmt::print(stderr, "{}: {}reference missed: {}: {}\n", position_text(sources, missed[i]),
               severity, table, missed[i].text);
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

bool read_run(const Settings& settings, const Run& run, const Benchmark& definitions,
              RunResults* out) {
  if (print_if_error(settings, read_workpackages(settings, run, definitions, out))) return false;
  print_unfinished(run, out->unfinished);
  return true;
}

bool analyse_run(const Settings& settings, const Run& run, size_t* rows) {
  const std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings);
  note_command(run.directory().path, "analyse", "analysed");
  RunResults results;
  if (!read_run(settings, run, run.definitions(), &results)) return false;
  *rows = analyse_all(settings, *evaluator, &results);
  print_diagnostics(settings, results.diagnostics, run.sources());
  return !results.diagnostics.has_errors();
}

namespace {

bool read_runs(const Settings& settings, std::span<const Run> runs, std::vector<RunResults>* all) {
  return std::ranges::all_of(runs, [&](const Run& run) {
    return read_run(settings, run, run.definitions(), &all->emplace_back());
  });
}

// Prints diagnostics, unless the same ones were printed for another run.
void print_once(const Settings& settings, const Diagnostics& diagnostics, const Sources& sources,
                std::set<std::string>* said) {
  if (said->insert(diagnostics.format(sources)).second)
    print_diagnostics(settings, diagnostics, sources);
}

void print_said(const Settings& settings, const std::vector<Problem>& said) {
  for (const Problem& one : said) {
    if (one.severity == Severity::error) {
      print_error(settings, one.message, one.hint);
    } else if (!settings.quiet) {
      fmt::print(stderr, "note: {}\n", one.message);
    }
  }
}

// Joins the tables of several runs. Returns false, after printing why, if some cannot be joined;
// the others are in *tables.
bool join_runs(const Settings& settings, std::vector<RunResults>& all, const RenderOptions& options,
               std::vector<RenderedResult>* tables) {
  JoinedTables joined = join_tables(all, options, !settings.called_as_jube);
  for (const std::string& problem : joined.problems) print_error(settings, problem);
  *tables = std::move(joined.tables);
  return joined.problems.empty();
}

// Shows the results of one run. Returns an exit code.
int show_run(const Settings& settings, RunResults& results, std::vector<RenderedResult>* shown) {
  int code = kFine;
  for (const MadeResult& made : results.results) {
    print_said(settings, made.said);
    code = std::max(code, print_results(settings, made.outputs, results.run->sources()));
  }
  *shown = results.take_outputs();
  return code;
}

// Shows the results of several runs: tables of one name are joined. Returns an exit code.
int show_joined(const Settings& settings, const RenderOptions& options,
                std::vector<RunResults>& all, std::vector<RenderedResult>* shown) {
  int code = kFine;
  std::set<std::string> said;
  for (RunResults& results : all) {
    const Sources& sources = results.run->sources();
    for (MadeResult& made : results.results) {
      print_said(settings, made.said);
      std::vector<RenderedResult> of_one_run;
      for (RenderedResult& one : made.outputs)
        if (one.of_one_run) of_one_run.push_back(std::move(one));
      code = std::max(code, print_results(settings, of_one_run, sources));
    }
    if (results.diagnostics.has_errors()) code = std::max(code, kFailed);
    print_once(settings, results.diagnostics, sources, &said);
  }
  if (!join_runs(settings, all, options, shown)) code = std::max(code, kFailed);
  return std::max(code, print_results(settings, *shown, all.back().run->sources()));
}

// Whether there was anything to show. Prints what there was not.
int report_no_output(const Settings& settings, const RenderOptions& options,
                     const Benchmark& newest) {
  if (!options.only.empty()) {
    print_error(settings, "the input has no result of that name");
    return kBadInput;
  }
  if (newest.results.empty())
    fmt::print(stderr, "{}: the input defines no result\n", settings.program);
  return kFine;
}

// Whether every column of every table was made.
bool shows_all(const RenderOptions& render) {
  return render.only.empty() && render.select.empty() && render.exclude.empty();
}

// Keeps the samples of a run beside the runs, for `tally history`.
int keep_history(const Settings& settings, const RunResults& results, const ReportedRun& reported,
                 const std::vector<RenderedResult>& tables) {
  if (!results.definitions->rules.values_are_kept) return kFine;
  const Status written =
      write_history(*results.run, reported, tables, results.unfinished, kVersion);
  if (!written) print_error(settings, written.message(), "results are shown, but not kept");
  return written ? kFine : kFailed;
}

}  // namespace

int show_results(const Settings& settings, std::span<const Run> runs, const ShowOptions& options) {
  std::vector<RunResults> all;
  if (runs.empty()) return kBadInput;
  if (!read_runs(settings, runs, &all)) return kFailed;
  const std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings);
  ResultRequest request = options.request;
  request.samples = options.samples != nullptr;
  request.warn = !settings.called_as_jube;
  size_t outputs = 0;
  for (RunResults& one : all) {
    results_of(settings, request, *evaluator, &one);
    outputs += one.output_count();
  }
  const bool single = all.size() == 1;
  std::vector<RenderedResult> shown;
  int code = single ? show_run(settings, all.front(), &shown)
                    : show_joined(settings, options.request.render, all, &shown);
  Diagnostics diagnostics =
      single ? std::move(all.front().diagnostics) : result_diagnostics(settings);
  std::vector<ReportedRun> reported;
  for (const Run& run : runs)
    if (Status s = reported_run(run, &reported.emplace_back()); !s)
      diagnostics.error({}, s.message());
  const RenderOptions& render = options.request.render;
  if (outputs != 0 || render.only.empty())
    print_json(render.style, reported, shown, runs.back().sources());
  if (options.request.write && single && render.only.empty())
    code = std::max(code, keep_history(settings, all.front(), reported.front(), shown));
  if (options.request.write && single && shows_all(render))
    code = std::max(
        code, do_result_steps(settings, runs.front(), shown, !all.front().unfinished.empty()));
  if (options.samples != nullptr) *options.samples = std::move(all.front().samples);
  if (options.shown != nullptr) *options.shown = std::move(shown);
  print_diagnostics(settings, diagnostics, runs.back().sources());
  if (outputs == 0)
    if (const int none =
            report_no_output(settings, options.request.render, runs.back().definitions());
        none != kFine)
      return none;
  const bool failed =
      diagnostics.has_errors() ||
      std::ranges::any_of(all, [](const RunResults& one) { return one.writes_failed(); });
  return failed ? std::max(code, kFailed) : code;
}

bool tables_of_runs(const Settings& settings, std::span<const Run> runs,
                    std::vector<RenderedResult>* tables) {
  const std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings);
  std::vector<RunResults> all;
  std::set<std::string> said;
  bool fine = true;
  ResultRequest request;
  request.write = request.warn = false;
  for (const Run& run : runs) {
    RunResults& one = all.emplace_back();
    if (!read_run(settings, run, run.definitions(), &one)) {
      fine = false;
      continue;
    }
    results_of(settings, request, *evaluator, &one);
    one.views = {};
    print_once(settings, one.diagnostics, run.sources(), &said);
    fine = fine && !one.diagnostics.has_errors();
  }
  if (!fine) return false;
  if (runs.size() > 1) return join_runs(settings, all, {}, tables);
  for (RenderedResult& one : all.front().take_outputs())
    if (one.definition != nullptr) tables->push_back(std::move(one));
  return true;
}

}  // namespace tally
