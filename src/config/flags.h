// The flags as given on the command line, before defaults and checks. Private to config/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/config/stored_models.h"

namespace CLI {
class App;
}

namespace tally::train {

// One field a flag; empty: not given.
struct Flags {
  std::optional<std::string> model;
  std::optional<int64_t> layers, hidden, heads, ffn, sequence, max_positions, vocabulary;
  int64_t vocabulary_multiple = 128;
  std::optional<std::string> positions;
  bool rotary = false, rope_scaling = false, untied = false, swiglu = false,
       disable_bias_linear = false, qkv_bias = false, qk_norm = false, grouped_queries = false;
  std::optional<std::string> normalization;
  std::optional<int64_t> query_groups, kv_channels;
  std::optional<int64_t> rope_positions;
  std::optional<double> rope_factor, rope_low, rope_high, rotary_base, rotary_percent,
      layernorm_epsilon, hidden_dropout, attention_dropout;
  double init_std = 0.02;

  std::optional<std::string> task;
  bool no_binary_head = false;
  std::optional<int64_t> classes, max_predictions, mock_samples;
  std::optional<double> classifier_dropout;

  std::optional<int64_t> micro_batch, global_batch, train_iterations, train_samples, epochs;
  std::vector<std::string> rampup;
  uint64_t seed = 1234;
  bool recompute_activations = false;
  std::optional<std::string> recompute_granularity;
  std::optional<int64_t> exit_interval;
  std::optional<double> exit_duration_minutes;

  std::string optimizer = "adam";
  OptimizerConfig adam;
  std::optional<double> adam_epsilon, sgd_momentum;
  std::optional<int64_t> decay_iterations, decay_samples, warmup_iterations, warmup_samples;
  std::optional<double> warmup_fraction, start_weight_decay, end_weight_decay;

  std::optional<std::string> precision, fp32_attention, fp8_format, fp8_recipe;
  bool first_last_bf16 = false;
  std::optional<int64_t> bf16_layers_at_start, bf16_layers_at_end;
  bool fp16 = false, bf16 = false, tf32 = false, fp64 = false;
  std::optional<double> loss_scale;
  double initial_loss_scale = 4294967296.0, min_loss_scale = 1.0;
  int64_t loss_scale_window = 1000, hysteresis = 2;

  DataConfig data;
  bool per_token_loss = false;
  std::vector<std::string> train_paths, valid_paths, test_paths;
  std::optional<std::string> tokenizer;

  int tensor_parallel = 1, pipeline_parallel = 1, context_parallel = 1, expert_parallel = 1;
  bool sequence_parallel = false, distributed_optimizer = false, no_peer_memory = false;
  std::string sharding_strategy;
  std::optional<int64_t> virtual_pipeline_layers;
  LaunchOptions launch;
  std::string rehearse, network;
  std::optional<int> processes, port, local_rank;
  std::optional<int64_t> weight_check_interval;
  std::optional<int64_t> gradient_bucket;

  std::string save, load, record, load_hf, save_hf, text;
  std::optional<int64_t> stride;
  std::optional<std::string> eval_mode;
  std::string predictions;
  std::optional<int64_t> save_interval, eval_interval, eval_iterations;
  bool exit_on_missing_checkpoint = false, finetune = false, skip_train = false,
       no_load_optimizer = false, no_save_optimizer = false;
  int64_t log_interval = 100;
  std::string log_format = "jupiter";
  bool log_throughput = false;

  bool no_energy = false, time_phases = false, find_batch = false;
  std::optional<int64_t> throughput_start, throughput_stop, profile_start, profile_stop;
  std::optional<std::string> profile_dir;
  bool profile_counters = false;

  std::string device = "auto";
  bool reference = false, no_cuda_graph = false, deterministic = false;
  std::optional<std::string> no_fusion;
  bool no_gelu_fusion = false;

  bool plan = false, plan_json = false;
  std::optional<std::string> plan_device;
  std::optional<int> plan_gpus, plan_nodes, plan_gpus_per_node, plan_zero;
  std::optional<double> plan_network, plan_efficiency;

  std::vector<std::string> ignored;  // accepted for compatibility: "--flag (why)"
};

// Declare flags on `app`, in groups, storing into `flags`: what is trained and how (flags.cc),
// encoders (flags_encoder.cc), what is read, written and run on (flags_run.cc), what is measured (flags_measure.cc), what is planned (flags_plan.cc), what is accepted without effect (flags_ignored.cc).
void declare_training_flags(CLI::App* app, Flags* flags);
void declare_encoder_flags(CLI::App* app, Flags* flags);
void declare_run_flags(CLI::App* app, Flags* flags);
void declare_launch_flags(CLI::App* app, Flags* flags);  // one group of these
void declare_measure_flags(CLI::App* app, Flags* flags);
void declare_plan_flags(CLI::App* app, Flags* flags);
void declare_ignored_flags(CLI::App* app, Flags* flags);
// All of them.
inline void declare_flags(CLI::App* app, Flags* flags) {
  declare_training_flags(app, flags);
  declare_encoder_flags(app, flags);
  declare_run_flags(app, flags);
  declare_measure_flags(app, flags);
  declare_plan_flags(app, flags);
  declare_ignored_flags(app, flags);
}
// Defaults that depend on other flags, presets, and all checks.
Config resolve(const Flags& flags, const StoredModels& stored, int world_size, Command command);

}  // namespace tally::train
