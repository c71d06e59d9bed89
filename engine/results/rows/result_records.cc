#include "engine/results/rows/result_records.h"

#include <fmt/format.h>

#include <string>

#include "engine/results/read/run_notes.h"

namespace tally {
namespace {

const Analyser* find_analyser(const Benchmark& benchmark, const std::string& name) {
  for (const Analyser& analyser : benchmark.analysers) {
    if (analyser.name.value == name) return &analyser;
  }
  return nullptr;
}

}  // namespace

void warn_of_unmatched(const Records& records, Diagnostics& diagnostics) {
  for (const Unmatched& one : records.unmatched) diagnostics.warning(one.mark, one.text);
}

Records result_records(const Benchmark& benchmark, const Result& result,
                       const std::vector<WorkpackageView>& views, Evaluator& evaluator,
                       Diagnostics& diagnostics, std::vector<Sample>* samples) {
  Records records;
  for (const Text& use : result.use) {
    if (const Analyser* analyser = find_analyser(benchmark, use.value)) {
      append(records,
             analyse(benchmark, *analyser, views, evaluator, diagnostics, nullptr, samples));
    } else {
      diagnostics.error(use.mark, fmt::format("<analyser name=\"{}\"> not found", use.value),
                        "the tags leave it out: give the result the same tag");
    }
  }
  if (std::string note = unfinished_note(benchmark, views); !note.empty())
    records.of_run.insert(records.of_run.begin(), std::move(note));
  return records;
}

}  // namespace tally
