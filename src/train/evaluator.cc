#include "src/train/evaluator.h"

#include "src/train/evaluation.h"
#include "src/train/loader.h"

namespace tally::train {

Evaluator::Evaluator(const Config& config, Stream& stream, EvaluateBatch evaluate, const Mesh& mesh)
    : config_(config),
      stream_(stream),
      evaluate_(std::move(evaluate)),
      mesh_(mesh),
      arena_(stream),
      state_(static_cast<StepState*>(
          arena_.make(DType::u8, {sizeof(StepState)}, "result of an evaluation").data)) {}

double Evaluator::loss(const Samples& samples, int64_t first, Batch& batch) {
  if (config_.epochs > 0)
    return mean_loss(stream_, evaluate_, batch,
                     *make_sample_blocks(samples.tokens, config_.sequence), state_, mesh_);
  const auto loader =
      make_loader(config_, mesh_.data(), stream_, samples, first, evaluation_in_flight);
  return mean_batch_loss(stream_, evaluate_, batch, *loader,
                         config_.eval_iterations * config_.micro_batches(), state_, mesh_);
}

}  // namespace tally::train
