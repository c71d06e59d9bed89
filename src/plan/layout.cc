#include "src/plan/layout.h"

#include <algorithm>

namespace tally::train {

PlanLayout layout_of(const Config& c) {
  PlanLayout l;
  l.tensor = c.tensor_parallel;
  l.pipeline = c.pipeline_parallel;
  l.data = c.data_parallel;
  l.chunks = c.virtual_pipeline_layers > 0 ? layers_of_stage(c) / c.virtual_pipeline_layers : 1;
  l.micro_batches = std::max<int64_t>(1, c.micro_batches());
  const int given = c.shard_gradients ? 2 : c.distributed_optimizer ? 1 : 0;
  const int asked = c.plan.zero >= 0 ? c.plan.zero : given;
  l.zero = c.data_parallel > 1 ? asked : 0;
  l.sequence = c.sequence_parallel && c.tensor_parallel > 1;
  return l;
}

int64_t layers_of_stage(const Config& c) {
  return c.model.layers / c.pipeline_parallel;
}

int64_t layers_of_chunk(const Config& c) {
  return c.virtual_pipeline_layers > 0 ? c.virtual_pipeline_layers : layers_of_stage(c);
}

namespace {

// Forward passes of a stage before its first backward pass.
int64_t passes_ahead(const PlanLayout& l, int stage, int64_t micro_batches) {
  const int64_t behind = l.pipeline - 1 - stage, all = micro_batches * l.chunks;
  if (l.chunks == 1) return std::min(all, behind);
  if (micro_batches == l.pipeline) return all;
  return std::min(all, 2 * behind + (l.chunks - 1) * l.pipeline);
}

}  // namespace

int64_t sets_in_flight(const PlanLayout& l, int stage, int64_t chunk) {
  if (l.pipeline == 1) return 1;
  // More micro batches than these repeat the steady state.
  const int64_t micro_batches = std::min<int64_t>(l.micro_batches, int64_t{4} * l.pipeline);
  const int64_t all = micro_batches * l.chunks, ahead = passes_ahead(l, stage, micro_batches);
  // The k-th pass belongs to this chunk; backward passes go through the chunks in reverse.
  const auto mine = [&](int64_t k, bool forward) {
    const int64_t turn = k / l.pipeline % l.chunks;
    return (forward ? turn : l.chunks - 1 - turn) == chunk;
  };
  int64_t held = 0, most = 0;
  for (int64_t k = 0; k < all + ahead; ++k) {
    if (k < all && mine(k, true)) most = std::max(most, ++held);
    if (k >= ahead && mine(k - ahead, false)) --held;
  }
  return most;
}

int64_t sets_in_flight(const PlanLayout& l, int stage) {
  int64_t sets = 0;
  for (int64_t chunk = 0; chunk < l.chunks; ++chunk) sets += sets_in_flight(l, stage, chunk);
  return sets;
}

double bubble_over_work(const PlanLayout& l) {
  return static_cast<double>(l.pipeline - 1) /
         static_cast<double>(l.chunks * std::max<int64_t>(1, l.micro_batches));
}

double pipeline_efficiency(const PlanLayout& l) {
  return 1 / (1 + bubble_over_work(l));
}

}  // namespace tally::train
