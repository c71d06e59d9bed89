// --skip-train: a run that evaluates and trains nothing.
#pragma once

#include "src/parallel/collectives/mesh.h"
#include "src/train/feed/data_sources.h"
#include "src/train/step/session.h"

namespace tally::train {

// Evaluates the model of `session`, which has done `iteration` steps, on --eval-iters global
// batches of the validation data and of the test data, from the first sample on. `print` gets
// Megatron-LM's lines, `record` the losses.
void evaluate_once(const Config& config, Session& session, const DataSources& data,
                   const Mesh& mesh, int64_t iteration, const Print& print, RunLists* lists);

}  // namespace tally::train
