#include "src/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace tally::train {

void ModelConfig::set_kind(const std::string& kind) {
  kind_ = kind;
  block = {};
  token_types = 0;
  pooler = kind == "bert";
  if (kind == "llama") {
    block = {.norm = NormKind::rms, .mlp = MlpActivation::swiglu, .biases = false};
  } else if (kind == "bert" || kind == "distilbert") {
    block = {.norm_position = NormPosition::after, .mlp = MlpActivation::gelu_erf, .causal = false};
    token_types = pooler ? 2 : 0;
  } else if (kind != "gpt") {
    throw std::logic_error("there is no kind of model " + kind);
  }
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

std::string precision_text(const Config& config) {
  const std::string name = precision_name(config.precision);
  if (!config.fp8.on()) return name;
  return fmt::format("{} with FP8 ({}, {})", name, fp8_format_name(config.fp8.format),
                     config.fp8.recipe.name);
}

const char* fp8_format_name(Fp8Config::Format f) {
  switch (f) {
    case Fp8Config::Format::none:
      return "none";
    case Fp8Config::Format::hybrid:
      return "hybrid";
    case Fp8Config::Format::e4m3:
      return "e4m3";
  }
  return "";
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

const char* task_name(Task task) {
  switch (task) {
    case Task::language_model:
      return "";
    case Task::pretraining:
      return "pretrain";
    case Task::classification:
      return "classify";
    case Task::question_answering:
      return "squad";
  }
  return "";
}

const char* eval_mode_name(EvalMode mode) {
  return mode == EvalMode::gather ? "gather" : "reduce";
}

int64_t pad_vocabulary(int64_t vocabulary, int64_t multiple) {
  return (vocabulary + multiple - 1) / multiple * multiple;
}

}  // namespace tally::train
