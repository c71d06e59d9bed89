#include "engine/results/result_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace tally {
namespace {

const Analyser* find_analyser(const Benchmark& benchmark, const std::string& name) {
  for (const Analyser& analyser : benchmark.analysers) {
    if (analyser.name.value == name) return &analyser;
  }
  return nullptr;
}

// A run that was killed or goes on lacks rows and values, also where no row shows it: a workpackage
// that has not ended may have no row, and the row of its parent is shown instead.
void note_unfinished(const Benchmark& benchmark, const std::vector<WorkpackageView>& views,
                     Records& records) {
  const auto unfinished = [](const WorkpackageView& view) {
    return view.state == State::pending || view.state == State::running ||
           view.state == State::waiting;
  };
  const auto count = std::count_if(views.begin(), views.end(), unfinished);
  if (count == 0 || benchmark.as_jube) return;
  records.notes.push_back(fmt::format(
      "{} of {} workpackages {} not ended: rows or values may be missing; `tally continue` runs "
      "what is left",
      count, views.size(), count == 1 ? "has" : "have"));
}

}  // namespace

void warn_of_unmatched(const Records& records, Diagnostics& diagnostics) {
  for (const Unmatched& one : records.unmatched) diagnostics.warning(one.mark, one.text);
}

Records result_records(const Benchmark& benchmark, const Result& result,
                       const std::vector<WorkpackageView>& views, Evaluator& evaluator,
                       Diagnostics& diagnostics, const std::set<std::string>& more_values,
                       std::vector<Sample>* samples) {
  Records records;
  for (const Text& use : result.use) {
    if (const Analyser* analyser = find_analyser(benchmark, use.value)) {
      append(records, analyse(benchmark, *analyser, views, evaluator, diagnostics, nullptr,
                              more_values, samples));
    } else {
      diagnostics.error(use.mark, fmt::format("<analyser name=\"{}\"> not found", use.value),
                        "the tags leave it out: give the result the same tag");
    }
  }
  note_unfinished(benchmark, views, records);
  return records;
}

}  // namespace tally
