// The least that a run needs.
#pragma once

#include "src/config/config.h"
#include "src/plan/gpus.h"

namespace tally::train {

// The layout with the fewest nodes that holds the model.
struct SmallestRun {
  int nodes = 0;  // 0: none up to the limit
  int tensor = 1, pipeline = 1, data = 1;
  double bytes = 0;  // the worst stage's
};
// Tensor parallel within a node, any pipeline that divides the layers, and as many replicas as the
// nodes hold. Precision, micro batch, recomputation, ZeRO and sequence parallelism stay.
SmallestRun smallest_run(const Config& config, const GpuKind& kind, int gpus_per_node);

}  // namespace tally::train
