#include "src/measure/flops.h"

namespace tally::train {

double megatron_flops_per_iteration(const Config& config) {
  const auto h = static_cast<double>(config.model.hidden);
  const auto l = static_cast<double>(config.model.layers);
  const auto s = static_cast<double>(config.sequence);
  const auto v = static_cast<double>(config.model.padded_vocabulary);
  const auto b = static_cast<double>(config.global_batch);
  const double passes = config.recompute == Recompute::none ? 3 : 4;
  if (config.model.is_llama())
    return passes / 3 * b * s * megatron_flops_per_token(config.model, config.sequence);
  return 24 * passes * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

namespace {

double flops_per_token(const ModelConfig& model, int64_t sequence, int64_t vocabulary) {
  const auto h = static_cast<double>(model.hidden);
  const auto l = static_cast<double>(model.layers);
  const auto v = static_cast<double>(vocabulary);
  const auto s = static_cast<double>(sequence);
  const auto matrices = static_cast<double>(model.block_matrices());
  const auto width = static_cast<double>(model.attention_width());
  return 6 * (l * matrices + h * v) + 6 * l * width * s;
}

}  // namespace

double model_flops_per_token(const ModelConfig& model, int64_t sequence) {
  return flops_per_token(model, sequence, model.vocabulary);
}

namespace {

double head_flops_per_token(const ModelConfig& model, double tokens) {
  const auto h = static_cast<double>(model.hidden);
  switch (model.task) {
    case Task::language_model:
      return 0;
    case Task::pretraining: {
      constexpr double masked = 0.15;
      const double next = model.predicts_next_sentence() ? 6 * (h * h + 2 * h) / tokens : 0;
      return 6 * masked * (h * h + h * static_cast<double>(model.vocabulary)) + next;
    }
    case Task::classification:
      return 6 * (h * h + h * static_cast<double>(model.classes)) / tokens;
    case Task::question_answering:
      return 12 * h;
  }
  return 0;
}

}  // namespace

double encoder_flops_per_token(const ModelConfig& model, double tokens) {
  const auto h = static_cast<double>(model.hidden);
  const auto f = static_cast<double>(model.ffn);
  const auto l = static_cast<double>(model.layers);
  return 6 * l * (4 * h * h + 2 * h * f) + 12 * l * h * tokens +
         head_flops_per_token(model, tokens);
}

double megatron_flops_per_token(const ModelConfig& model, int64_t sequence) {
  return flops_per_token(model, sequence, model.padded_vocabulary);
}

}  // namespace tally::train
