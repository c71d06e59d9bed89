// The model's loss on held-out samples, between the steps of a training or without training.
#pragma once

#include <memory>

#include "src/config/config.h"
#include "src/data/dataset.h"
#include "src/device/arena.h"
#include "src/model/stage.h"
#include "src/parallel/mesh.h"
#include "src/train/evaluation.h"

namespace tally::train {

class Evaluator {
 public:
  // All outlive it. Throws OutOfMemory.
  Evaluator(const Config& config, Stream& stream, EvaluateBatch evaluate, const Mesh& mesh);

  // The mean loss on --eval-iters global batches of `samples` from sample `first` on; with --epochs,
  // on all its blocks. `batch` is overwritten. Collective; waits for the device.
  double loss(const Samples& samples, int64_t first, Batch& batch);

 private:
  const Config& config_;
  Stream& stream_;
  const EvaluateBatch evaluate_;
  const Mesh& mesh_;
  Arena arena_;
  StepState* state_;
};

}  // namespace tally::train
