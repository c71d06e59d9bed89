#include "src/train/step/mllog.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace tally::train {
namespace {

constexpr const char* kStart = "INTERVAL_START";
constexpr const char* kEnd = "INTERVAL_END";
constexpr const char* kPoint = "POINT_IN_TIME";

// The benchmark of MLPerf Training that is nearest: its sizes and data are not this run's.
const char* benchmark_of(const ModelConfig& model) {
  if (!model.language_model()) return "bert";
  return model.kind() == "llama" ? "llama31_8b" : "gpt3";
}

// MLPerf's names.
const char* mlperf_precision(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return "bfloat16";
    case Precision::tf32x3:
    case Precision::tf32:
      return "tf32";
    default:
      return precision_name(precision);
  }
}

// A number or another JSON value as it is written, anything else as a text.
nlohmann::ordered_json logged_value(const std::string& text) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  return json.is_discarded() ? nlohmann::ordered_json(text) : json;
}

}  // namespace

int64_t MlLog::system_now() {
  using std::chrono::milliseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<milliseconds>(now).count();
}

MlLog::MlLog(const Config& config, Now now)
    : config_(config), now_(std::move(now)), file_(config.mllog_path, std::ios::trunc) {
  if (!file_) throw std::runtime_error(fmt::format("{}: cannot be written", config.mllog_path));
  // The rules want to know whether caches were cleared, which needs root: this run has not done it.
  point("cache_clear", false);
  write(kStart, "init_start", nullptr, Json::object());
}

void MlLog::write(const char* type, const std::string& key, const Json& value,
                  const Json& metadata) {
  Json line = {{"namespace", ""}, {"time_ms", now_()}, {"event_type", type}, {"key", key}};
  line["value"] = value;
  written_.insert(key);
  const auto given =
      std::ranges::find_if(config_.mllog_values, [&](const auto& one) { return one.first == key; });
  if (given != config_.mllog_values.end()) line["value"] = logged_value(given->second);
  line["metadata"] = metadata;
  line["metadata"]["file"] = "tally-train";
  line["metadata"]["lineno"] = 0;
  file_ << ":::MLLOG " << line.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void MlLog::point(const std::string& key, const Json& value) {
  write(kPoint, key, value, Json::object());
}

MlLog::Json MlLog::place(const Progress& done) {
  return {{"samples_count", done.consumed_samples},
          {"epoch_num", done.consumed_samples},
          {"first_epoch_num", done.consumed_samples}};
}

void MlLog::start(const RunFacts& facts, const Progress& done) {
  log_settings(facts);
  log_optimizer();
  log_precision();
  for (const auto& [key, value] : config_.mllog_values) {
    if (!written_.count(key)) point(key, logged_value(value));
  }
  write(kEnd, "init_stop", nullptr, Json::object());
  write(kStart, "run_start", nullptr, Json::object());
  started_ = true;
  write(kStart, "block_start", nullptr, place(done));
  in_block_ = true;
}

void MlLog::log_settings(const RunFacts& facts) {
  const Config& c = config_;
  point("submission_benchmark", benchmark_of(c.model));
  point("submission_org", "none");
  point("submission_division", "open");
  point("submission_status", "research");
  point("submission_platform", fmt::format("{} x {}", c.world_size, facts.device_info.name));
  point("config_filename", "command line");
  point("seed", c.seed);
  point("global_batch_size", c.global_batch);
  point("micro_batch_size", c.micro_batch);
  point("gradient_accumulation_steps", c.micro_batches());
  point("max_sequence_length", c.sequence);
  point("train_samples", c.train_iterations * c.global_batch);
  point("eval_samples", c.eval_iterations * c.global_batch);
  point("max_steps", c.train_iterations);
  point("init_checkpoint_step", facts.first_iteration);
  if (c.target_loss > 0) point("target_accuracy", c.target_loss);
  point("tensor_parallelism", c.tensor_parallel);
  point("pipeline_parallelism", c.pipeline_parallel);
  point("context_parallelism", 1);
  point("expert_parallelism", 1);
}

void MlLog::log_optimizer() {
  const OptimizerConfig& o = config_.optimizer;
  const auto batch = static_cast<double>(config_.global_batch);
  const auto warmup = static_cast<int64_t>(std::ceil(o.warmup_samples / batch));
  const auto all = static_cast<int64_t>(std::ceil(static_cast<double>(o.decay_samples) / batch));
  // This program's Adam decouples the decay of weights from the gradient, as that of Megatron-LM,
  // which MLPerf's GPT-3 calls adam.
  const bool adam = o.kind == OptimizerKind::adam, lamb = o.kind == OptimizerKind::lamb;
  const bool plain_name = !adam || benchmark_of(config_.model) == std::string("gpt3");
  const std::string name = plain_name ? optimizer_name(o.kind) : "adamw";
  point("opt_name", name);
  point("opt_base_learning_rate", o.lr);
  point("opt_end_learning_rate", o.min_lr);
  point("opt_learning_rate_warmup_steps", warmup);
  point("opt_learning_rate_decay_steps", std::max<int64_t>(all - warmup, 0));
  point("opt_learning_rate_training_steps", config_.train_iterations);
  point("opt_learning_rate_decay_schedule", o.decay_style + " with linear warmup");
  point("num_warmup_steps", warmup);
  point("start_warmup_step", 0);
  point("opt_gradient_clip_norm", o.clip);
  if (!adam && !lamb) return;
  point("opt_" + name + "_beta_1", o.beta1);
  point("opt_" + name + "_beta_2", o.beta2);
  point("opt_" + name + "_epsilon", o.epsilon);
  point("opt_" + name + (adam ? "_weight_decay" : "_weight_decay_rate"), o.weight_decay);
}

void MlLog::log_precision() {
  const Config& c = config_;
  const std::string own = mlperf_precision(c.precision);
  const bool fp8 = c.fp8.format != Fp8Config::Format::none;
  // Gradients are added up in float32 or wider; weights and activations travel as they are.
  const bool divides =
      c.tensor_parallel * c.pipeline_parallel > 1 || (c.distributed_optimizer && c.world_size > 1);
  const bool half = c.precision == Precision::bf16 || c.precision == Precision::f16;
  const std::string sums = c.precision == Precision::f64 ? "fp64" : "fp32";
  point("lowest_numerical_precision_in_linear", fp8 ? "fp8" : own);
  point("lowest_numerical_precision_in_attn", own);
  point("lowest_numerical_precision_in_comm", divides && half ? own : sums);
}

void MlLog::evaluating(const Progress& done) {
  if (in_block_) write(kEnd, "block_stop", nullptr, place(done));
  in_block_ = false;
  write(kStart, "eval_start", nullptr, place(done));
}

void MlLog::evaluated(const Progress& done, double loss) {
  write(kPoint, "eval_accuracy", loss, place(done));
  write(kEnd, "eval_stop", nullptr, place(done));
  const bool goes_on = done.iteration < config_.train_iterations &&
                       !(config_.target_loss > 0 && loss <= config_.target_loss);
  if (!goes_on) return;
  write(kStart, "block_start", nullptr, place(done));
  in_block_ = true;
}

void MlLog::stop(const Progress& done, bool success) {
  if (!started_) return;
  if (in_block_) write(kEnd, "block_stop", nullptr, place(done));
  Json metadata = place(done);
  metadata["status"] = success ? "success" : "aborted";
  write(kEnd, "run_stop", nullptr, metadata);
  started_ = in_block_ = false;
}

std::string MlLog::failure() const {
  return file_ ? "" : fmt::format("--mllog: {} could not be written", config_.mllog_path);
}

}  // namespace tally::train
