// The order in which a stage of a pipeline does the forward and backward passes of a step's micro
// batches.
//   1F1B         Narayanan et al., arXiv:2006.09503: as many forward passes as there are stages
//                behind this one, then a forward and a backward pass in turn
//   interleaved  Narayanan et al., arXiv:2104.04473, section 2.2: every process holds several
//                chunks of layers, and its passes go round the processes once for each chunk
// Both as in Megatron-LM (megatron/core/pipeline_parallel/schedules.py). All stages do the passes
// of a chunk in the order of the micro batches, so that what two neighbours exchange has one order,
// and no message needs a name.
#pragma once

#include <cstdint>
#include <vector>

#include "src/config/config.h"
#include "src/model/stage.h"
#include "src/parallel/collectives/mesh.h"

namespace tally::train {

struct PipelineStep {
  bool forward = true;
  int chunk = 0;
  int64_t micro_batch = 0;
  bool operator==(const PipelineStep&) const = default;
};

// The schedule of the process `stage` of `stages` with `chunks` chunks each. With several chunks
// `micro_batches` is a multiple of `stages`.
std::vector<PipelineStep> pipeline_schedule(int stage, int stages, int chunks,
                                            int64_t micro_batches);

// Micro batches of a chunk that are in flight at most: forward pass begun, backward pass not done.
int64_t micro_batches_in_flight(const std::vector<PipelineStep>& schedule, int chunk);
// The same of the process: begun in any chunk, not done in all.
int64_t micro_batches_in_flight(const std::vector<PipelineStep>& schedule);

}  // namespace tally::train
