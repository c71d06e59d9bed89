// The model's loss (and a classifier's accuracy) on held-out samples, between the steps of a
// training or without training.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "src/config/config.h"
#include "src/data/tokens/dataset.h"
#include "src/device/arena.h"
#include "src/model/stage.h"
#include "src/parallel/collectives/mesh.h"
#include "src/train/score/class_counts.h"
#include "src/train/score/encoder_scores.h"
#include "src/train/score/evaluation.h"

namespace tally::train {

// The result of an evaluation.
struct HeldOutResult {
  double loss = 0;
  Metrics metrics;  // a classifier's accuracy, where a label counts; SQuAD's with --epochs
};

class Evaluator {
 public:
  // `logits`: Stage::logits() of the model that `evaluate` runs. All outlive it. Throws
  // OutOfMemory.
  Evaluator(const Config& config, Stream& stream, EvaluateBatch evaluate,
            std::function<Tensor()> logits, const Mesh& mesh);

  // The mean loss and the metrics on --eval-iters global batches of `samples` from sample `first`
  // on; with --epochs on all of them. `batch` is overwritten. Collective; waits for the device.
  HeldOutResult evaluate(const Samples& samples, int64_t first, Batch& batch);

 private:
  HeldOutResult evaluate_all(const Samples& samples);
  HeldOutResult with_accuracy(double loss, const ClassCounts& mine);

  const Config& config_;
  Stream& stream_;
  const EvaluateBatch evaluate_;
  const std::function<Tensor()> logits_;
  const Mesh& mesh_;
  Arena arena_;
  StepState* state_;
  Tensor counts_;  // i64 [2], of classifiers
};

}  // namespace tally::train
