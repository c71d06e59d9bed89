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
  const int asked = c.plan.asked ? c.plan.zero : (c.distributed_optimizer ? 1 : 0);
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

int64_t sets_in_flight(const PlanLayout& l, int stage) {
  const int64_t behind = l.pipeline - 1 - stage;
  const int64_t all = l.micro_batches * l.chunks;
  if (l.pipeline == 1) return 1;
  if (l.chunks == 1) return std::min(all, behind + 1);
  return std::min(all, 2 * behind + (l.chunks - 1) * l.pipeline + 1);
}

double bubble_over_work(const PlanLayout& l) {
  return static_cast<double>(l.pipeline - 1) /
         static_cast<double>(l.chunks * std::max<int64_t>(1, l.micro_batches));
}

double pipeline_efficiency(const PlanLayout& l) {
  return 1 / (1 + bubble_over_work(l));
}

}  // namespace tally::train
