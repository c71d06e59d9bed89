#include "src/train/score/evaluator.h"

#include <array>

#include "src/train/feed/loader.h"
#include "src/train/score/encoder_evaluation.h"
#include "src/train/score/evaluation.h"

namespace tally::train {

Evaluator::Evaluator(const Config& config, Stream& stream, EvaluateBatch evaluate,
                     std::function<Tensor()> logits, const Mesh& mesh)
    : config_(config),
      stream_(stream),
      evaluate_(std::move(evaluate)),
      logits_(std::move(logits)),
      mesh_(mesh),
      arena_(stream),
      state_(static_cast<StepState*>(
          arena_.make(DType::u8, {sizeof(StepState)}, "result of an evaluation").data)) {
  if (config.model.task == Task::classification)
    counts_ = arena_.make(DType::i64, {2}, "labels of an evaluation");
}

HeldOutResult Evaluator::evaluate(const Samples& samples, int64_t first, Batch& batch) {
  if (config_.epochs > 0 && samples.sequences) return evaluate_all(samples);
  if (config_.epochs > 0)
    return {mean_loss(stream_, evaluate_, batch,
                      *make_sample_blocks(samples.tokens, config_.sequence), state_, mesh_),
            {}};
  const auto loader =
      make_loader(config_, mesh_.samples(), stream_, samples, first, evaluation_in_flight);
  const int64_t micro_batches = config_.eval_iterations * config_.micro_batches();
  if (!counts_.defined())
    return {batch_losses(stream_, evaluate_, batch, *loader, micro_batches, state_, mesh_)
                .mean_of(config_.model.label_heads()),
            {}};
  ClassCounts counts;
  const EvaluateBatch counting = [&](const Batch& filled, const Pass& pass) {
    evaluate_(filled, pass);
    const Tensor& labels = filled.labels[0];
    std::vector<int32_t> of(static_cast<size_t>(labels.numel()));
    stream_.copy(of.data(), labels.data, labels.bytes());
    counts.add(greatest_of_rows(fetch_f32(logits_(), stream_), config_.model.classes), of);
  };
  const double loss = batch_losses(stream_, counting, batch, *loader, micro_batches, state_, mesh_)
                          .mean_of(config_.model.label_heads());
  return with_accuracy(loss, counts);
}

HeldOutResult Evaluator::evaluate_all(const Samples& samples) {
  EncoderExam labelled;
  labelled.source = samples.sequences;
  labelled.name = "the held-out data";
  const EncoderEvaluation found =
      evaluate_encoder(config_, labelled, stream_, mesh_, evaluate_, logits_);
  if (!samples.questions) return {found.loss, found.metrics};
  return {
      found.loss,
      evaluate_encoder(config_, *samples.questions, stream_, mesh_, evaluate_, logits_).metrics};
}

// The replicas add what they have counted.
HeldOutResult Evaluator::with_accuracy(double loss, const ClassCounts& mine) {
  std::array<int64_t, 2> sums{mine.labels, mine.right};
  stream_.copy(counts_.data, sums.data(), counts_.bytes());
  mesh_.samples().all_reduce(stream_, counts_);
  stream_.copy(sums.data(), counts_.data, counts_.bytes());
  stream_.synchronize();
  if (sums[0] == 0) return {loss, {}};
  return {loss, {{"accuracy", static_cast<double>(sums[1]) / static_cast<double>(sums[0])}}};
}

}  // namespace tally::train
