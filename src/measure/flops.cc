#include "src/measure/flops.h"

#include "src/model/architecture.h"

namespace tally::train {

double megatron_flops_per_iteration(const Config& config) {
  const auto h = static_cast<double>(config.model.hidden);
  const auto l = static_cast<double>(config.model.layers);
  const auto s = static_cast<double>(config.sequence);
  const auto v = static_cast<double>(config.model.padded_vocabulary);
  const auto b = static_cast<double>(config.global_batch);
  const double passes = config.recompute == Recompute::none ? 3 : 4;
  if (config.model.block.gated())
    return passes / 3 * b * s * megatron_flops_per_token(config.model, config.sequence);
  return 24 * passes * b * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
}

double attention_flops_per_token(const ModelConfig& model, double tokens) {
  const double seen =
      model.language_model() ? 0.5 : 1;  // the share of a sample's tokens, on average
  return seen * 12 * static_cast<double>(model.layers * model.attention_width()) * tokens;
}

namespace {

// Elements of the matrices above the blocks that read these tokens. The token table is one of them
// where it is the decoder; of its rows those that count are `vocabulary`.
double head_matrices(const ModelConfig& model, Reads reads, int64_t vocabulary) {
  const ModelTable table = table_of(model);
  int64_t elements = 0;
  for (const auto* rows : {&table.below, &table.above})
    for (const WeightRow& row : *rows)
      if (row.reads == reads) elements += (row.vocabulary ? vocabulary : row.rows) * row.columns;
  return static_cast<double>(elements);
}

double flops_per_token(const ModelConfig& model, int64_t sequence, int64_t vocabulary) {
  const auto l = static_cast<double>(model.layers);
  const auto matrices = static_cast<double>(block_matrices(model));
  return 6 * (l * matrices + head_matrices(model, Reads::all, vocabulary)) +
         attention_flops_per_token(model, static_cast<double>(sequence));
}

}  // namespace

double model_flops_per_token(const ModelConfig& model, int64_t sequence) {
  return flops_per_token(model, sequence, model.vocabulary);
}

double encoder_flops_per_token(const ModelConfig& model, double tokens) {
  constexpr double masked = 0.15;
  const auto l = static_cast<double>(model.layers);
  const auto of = [&](Reads reads) { return head_matrices(model, reads, model.vocabulary); };
  return 6 * l * static_cast<double>(block_matrices(model)) +
         attention_flops_per_token(model, tokens) +
         (6 * of(Reads::all) + 6 * masked * of(Reads::masked) + 6 * of(Reads::firsts) / tokens);
}

double fp8_flops_per_token(const Config& config) {
  int64_t layers = 0;
  for (int64_t l = 0; l < config.model.layers; ++l)
    layers += config.fp8.serves(l, config.model.layers);
  return 6 * static_cast<double>(layers * block_matrices(config.model));
}

double megatron_flops_per_token(const ModelConfig& model, int64_t sequence) {
  return flops_per_token(model, sequence, model.padded_vocabulary);
}

}  // namespace tally::train
