#include "src/config/config.h"

#include <algorithm>

namespace tally::train {

// The tables besides the words, and the head.
int64_t ModelConfig::encoder_parameters() const {
  const int64_t dense = hidden * hidden + hidden;
  const int64_t tables = (max_positions + token_types) * hidden;
  if (task == Task::classification) return tables + dense + classes * (hidden + 1);
  if (task == Task::question_answering) return tables + 2 * (hidden + 1);
  const int64_t next = predicts_next_sentence() ? dense + 2 * (hidden + 1) : 0;
  return tables + dense + 2 * hidden + padded_vocabulary + next;
}

int64_t ModelConfig::parameters() const {
  const bool biases = !is_llama();
  const int64_t norm = biases ? 2 * hidden : hidden;
  const auto linear = [&](int64_t out, int64_t in) { return out * in + (biases ? out : 0); };
  const int64_t attention = linear(qkv_width(), hidden) + linear(hidden, attention_width());
  const int64_t mlp = linear(fc_width(), hidden) + linear(hidden, ffn);
  int64_t n = padded_vocabulary * hidden + layers * (2 * norm + attention + mlp) + norm;
  if (encoder()) return n + encoder_parameters();
  if (positions == Positions::learned) n += max_positions * hidden;
  if (!tied_embeddings) n += padded_vocabulary * hidden;
  return n;
}

// Megatron-LM's RampupBatchsizeNumMicroBatchesCalculator, with its floating-point division.
int64_t Config::global_batch_at(int64_t consumed_samples) const {
  if (rampup.start == 0 || consumed_samples > rampup.samples) return global_batch;
  const int64_t increments = (global_batch - rampup.start) / rampup.increment;
  const double samples_each = static_cast<double>(rampup.samples) / static_cast<double>(increments);
  const auto done = static_cast<int64_t>(static_cast<double>(consumed_samples) / samples_each);
  return rampup.start + done * rampup.increment;
}

int Config::micro_batches_ahead() const {
  constexpr int64_t usual = 8;
  return static_cast<int>(divides_by_labels() ? std::max(usual, micro_batches()) : usual);
}

DType Config::compute_type() const {
  switch (precision) {
    case Precision::f64:
      return DType::f64;
    case Precision::f32:
    case Precision::tf32x3:
    case Precision::tf32:
      return DType::f32;
    case Precision::bf16:
      return DType::bf16;
    case Precision::f16:
      return DType::f16;
  }
  return DType::f32;
}

const char* precision_name(Precision p) {
  switch (p) {
    case Precision::f64:
      return "fp64";
    case Precision::f32:
      return "fp32";
    case Precision::tf32x3:
      return "tf32x3";
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    case Precision::f16:
      return "fp16";
  }
  return "?";
}

const char* recompute_name(Recompute r) {
  switch (r) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "?";
}

const char* optimizer_name(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::lamb:
      return "lamb";
    case OptimizerKind::sgd:
      return "sgd";
  }
  return "?";
}

const char* eval_mode_name(EvalMode mode) {
  return mode == EvalMode::gather ? "gather" : "reduce";
}

int64_t pad_vocabulary(int64_t vocabulary, int64_t multiple) {
  return (vocabulary + multiple - 1) / multiple * multiple;
}

}  // namespace tally::train
