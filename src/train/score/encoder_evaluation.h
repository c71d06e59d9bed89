// The loss of an encoder on all samples of its data, and what its answers are worth.
#pragma once

#include <functional>
#include <string>

#include "src/config/config.h"
#include "src/device/stream.h"
#include "src/parallel/collectives/mesh.h"
#include "src/train/feed/encoder_data.h"
#include "src/train/run/world.h"
#include "src/train/score/encoder_scores.h"
#include "src/train/score/evaluation.h"
#include "src/train/score/steady_passes.h"

namespace tally::train {

// Seconds of the phases of an evaluation, each of which all processes end together.
struct EvaluationPhases {
  double evaluation = 0;  // forward passes, and the copies of their answers to the host
  double gather = 0;      // EvalMode::gather: the answers of all processes come to rank 0
  double metric = 0;      // from answers to sums, on the CPU
  double exchange = 0;    // the sums are added (reduce), or rank 0's are broadcast (gather)
};

struct EncoderEvaluation {
  // Each head's mean over its labels in all samples, of all heads together: masked tokens and pairs
  // of sentences; classes; half of an answer's first and half of its last token. SQuAD's evaluation
  // has none, since questions have several right answers.
  double loss = 0;
  int64_t samples = 0, tokens = 0;
  double seconds = 0;     // time of a pass over the data
  SteadyPasses measured;  // the passes whose mean the times are; one where nothing is measured
  Metrics metrics;        // the same on all ranks
  EvaluationPhases phases;
  std::string predictions;  // on rank 0, where --predictions asks for them
};

// Evaluates with a model that is there already. `evaluate` runs a micro batch of up to
// --micro-batch-size samples, and `logits` gives what Stage::logits() gives then. The replicas of
// `mesh` divide the samples. Questions without `exam.features` give a loss and no metric, others a
// metric and no loss. Collective. Throws std::runtime_error, CheckFailed where no label counts, and
// OutOfMemory.
EncoderEvaluation evaluate_encoder(const Config& config, const EncoderExam& exam, Stream& stream,
                                   const Mesh& mesh, const EvaluateBatch& evaluate,
                                   const std::function<Tensor()>& logits);

// Takes the weights of config.model_dir, which has all of the task. The replicas of `mesh` divide
// the samples. Collective. Throws std::runtime_error, CheckFailed where no label counts, and
// OutOfMemory.
EncoderEvaluation evaluate_encoder(const Config& config, const EncoderExam& exam, Stream& stream,
                                   const Mesh& mesh, World& world);

}  // namespace tally::train
