#include "engine/workflow/workflow.h"

namespace tally {

const Step* Benchmark::find_step(const std::string& step) const {
  for (const Step& candidate : steps) {
    if (candidate.name.value == step) return &candidate;
  }
  return nullptr;
}

const Table* drawn_table(const Result& result, const Chart& chart) {
  const Table* found = nullptr;
  for (const auto& output : result.outputs) {
    const Table* table = std::get_if<Table>(&output);
    if (table == nullptr) continue;
    if (table->name.value == chart.table.value) return table;
    if (chart.table.value.empty() && found != nullptr) return nullptr;  // which one?
    if (chart.table.value.empty()) found = table;
  }
  return found;
}

}  // namespace tally
