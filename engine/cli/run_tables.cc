#include "engine/cli/run_tables.h"
#include "engine/cli/prepare.h"

#include <set>

#include "engine/expand/evaluator.h"
#include "engine/results/views.h"

namespace tally {
namespace {

// What stands in the column "id": the number, or the folder if two runs have the same number.
std::vector<Value> names_of_runs(const std::vector<OpenRun>& runs) {
  std::set<int> ids;
  for (const OpenRun& run : runs) ids.insert(run.directory.id);
  std::vector<Value> names;
  for (const OpenRun& run : runs) {
    if (ids.size() == runs.size()) {
      names.emplace_back().data = static_cast<long long>(run.directory.id);
    } else {
      names.emplace_back().data = run.directory.path;
    }
  }
  return names;
}

}  // namespace

bool open_runs(const Invocation& invocation, const std::vector<std::string>& folders,
               const std::vector<std::string>& ids, std::vector<OpenRun>* runs) {
  for (const std::string& folder : folders) {
    const std::vector<RunDirectory> found = find_runs(invocation, {folder, ids});
    if (found.empty()) return false;
    for (const RunDirectory& directory : found) {
      OpenRun run;
      if (!open_run(invocation, directory, "", {}, &run)) return false;
      runs->push_back(std::move(run));
    }
  }
  return true;
}

bool tables_of_runs(const Invocation& invocation, const std::vector<OpenRun>& runs,
                    std::vector<RunTable>* tables) {
  const OpenRun& newest = runs.back();
  const std::unique_ptr<Evaluator> evaluator = make_result_evaluator(invocation);
  Diagnostics diagnostics;
  std::vector<std::vector<WorkpackageView>> views;
  for (const OpenRun& run : runs) {
    const Status read =
        workpackage_views(*run.benchmark, *run.journal, run.directory.path, &views.emplace_back());
    if (!read) {
      print_error(invocation, read.message());
      return false;
    }
  }
  const std::vector<Value> names = names_of_runs(runs);
  for (const Result& result : newest.benchmark->results) {
    Records merged;
    for (size_t i = 0; i < runs.size(); ++i) {
      Records own = result_records(*runs[i].benchmark, result, views[i], *evaluator, diagnostics);
      for (Record& row : own.rows) row.values["id"] = names[i];
      append(merged, std::move(own));
    }
    const ResultTables shown(*newest.benchmark, merged, *evaluator, diagnostics);
    RenderOptions options;
    options.with_id = runs.size() > 1;
    options.write = false;
    // One rendered result for each output, in their order.
    std::vector<RenderedResult> rendered =
        render(*newest.benchmark, result, shown, options, "", diagnostics);
    for (size_t i = 0; i < rendered.size(); ++i) {
      const Table* table = std::get_if<Table>(&result.outputs[i]);
      if (table != nullptr) tables->push_back({&result, table, std::move(rendered[i])});
    }
  }
  print_diagnostics(invocation, diagnostics, newest.input->sources);
  return !diagnostics.has_errors();
}

}  // namespace tally
