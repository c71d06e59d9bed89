#include "engine/report/run_results.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/jube/jube_files.h"
#include "engine/report/result_files.h"
#include "engine/results/judge/compare.h"
#include "engine/results/read/views.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/results/rows/analyse.h"

namespace tally {

size_t RunResults::output_count() const {
  size_t count = 0;
  for (const MadeResult& one : results) count += one.outputs.size();
  return count;
}

bool RunResults::writes_failed() const {
  return std::ranges::any_of(results, [](const MadeResult& one) {
    return std::ranges::any_of(
        one.said, [](const Problem& problem) { return problem.severity == Severity::error; });
  });
}

std::vector<RenderedResult> RunResults::take_outputs() {
  std::vector<RenderedResult> all;
  for (MadeResult& one : results)
    std::move(one.outputs.begin(), one.outputs.end(), std::back_inserter(all));
  return all;
}

std::unique_ptr<Evaluator> make_result_evaluator(const Settings& settings) {
  return settings.no_exec ? make_refusing_evaluator() : make_evaluator(".");
}

Diagnostics result_diagnostics(const Settings& settings) {
  Diagnostics diagnostics;
  if (settings.strict && !settings.called_as_jube) diagnostics.make_warnings_errors();
  return diagnostics;
}

Status read_workpackages(const Settings& settings, const Run& run, const Benchmark& definitions,
                         RunResults* out) {
  out->run = &run;
  out->definitions = &definitions;
  out->diagnostics = result_diagnostics(settings);
  const Status read =
      workpackage_views(definitions, run.journal(), run.directory().path, &out->views);
  if (read) out->unfinished = unfinished_note(definitions, out->views);
  return read;
}

size_t analyse_all(const Settings& settings, Evaluator& evaluator, RunResults* out) {
  const ResultContext context{*out->definitions, evaluator, out->diagnostics};
  size_t rows = 0;
  std::vector<AnalyserResult> results;
  for (const Analyser& analyser : out->definitions->analysers) {
    AnalyserResult& result = results.emplace_back();
    result.name = analyser.name.value;
    const Records records = analyse(context, analyser, out->views, &result.workpackages);
    rows += records.rows.size();
    if (!settings.called_as_jube) report_unmatched(records, true, out->diagnostics);
  }
  if (Status kept = write_analyse_xml(results, out->run->directory().path); !kept)
    out->diagnostics.error({}, kept.message());
  return rows;
}

void results_of(const Settings& settings, const ResultRequest& request, Evaluator& evaluator,
                RunResults* out) {
  const bool write = request.write && out->run != nullptr;
  // `result` also writes the analysis, as in JUBE. Its problems are the same as those of the
  // tables.
  if (settings.called_as_jube && write) {
    Diagnostics said_below = std::exchange(out->diagnostics, {});
    analyse_all(settings, evaluator, out);
    out->diagnostics = std::move(said_below);
  }
  const ResultContext context{*out->definitions, evaluator, out->diagnostics,
                              request.warn && out->run != nullptr};
  ResultFiles files(out->run, request.render, write);
  for (const Result& result : out->definitions->results) {
    const Records records =
        result_records(context, result, out->views, request.samples ? &out->samples : nullptr);
    if (request.warn) report_unmatched(records, out->run != nullptr, out->diagnostics);
    const ResultTables tables(context, records);
    out->results.push_back(files.make(*out->definitions, result, tables, out->diagnostics));
  }
}

std::vector<const Table*> metric_tables(const Result& result) {
  std::vector<const Table*> found = tables_of(result);
  std::erase_if(found,
                [](const Table* table) { return std::ranges::none_of(table->columns, is_metric); });
  return found;
}

std::vector<ResultTable> metric_values(const Settings& settings, RunResults* out) {
  std::vector<ResultTable> values;
  const std::unique_ptr<Evaluator> evaluator = make_result_evaluator(settings);
  const ResultContext context{*out->definitions, *evaluator, out->diagnostics};
  const std::vector<Result>& results = out->definitions->results;
  for (const Result& result : results) {
    Records records = result_records(context, result, out->views);
    if (&result == &results.back()) out->views = {};
    const std::vector<const Table*> tables = metric_tables(result);
    for (const Table* table : tables) {
      const ResultTables maker(context, records);
      values.push_back(
          maker.table(*table, {}, table == tables.back() ? std::move(records.rows) : records.rows));
    }
  }
  return values;
}

}  // namespace tally
