// The command line as it was given, before defaults that depend on other flags and before checks of
// several. Private to config/.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/config/stored_models.h"

namespace tally::train {

// Values that need nothing else lie in `config`, where the flag's row in the table of settings
// stores them. The others have a field each; empty: not given.
struct Flags {
  Config config;
  std::set<std::string> given;  // the first names of the flags that were given

  // The model, which --model or a folder may have given sizes.
  std::optional<std::string> model;
  std::optional<int64_t> layers, hidden, heads, ffn, sequence, max_positions, vocabulary;
  int64_t vocabulary_multiple = 128;
  std::optional<Positions> positions;
  bool rotary = false, rope_scaling = false, untied = false, swiglu = false,
       disable_bias_linear = false, qkv_bias = false, qk_norm = false, grouped_queries = false;
  std::optional<NormKind> normalization;
  std::optional<int64_t> query_groups, kv_channels;
  std::optional<int64_t> rope_positions;
  std::optional<double> rope_factor, rope_low, rope_high, rotary_base, rotary_percent,
      layernorm_epsilon, hidden_dropout, attention_dropout;

  std::optional<Task> task;
  bool no_binary_head = false;
  std::optional<int64_t> classes, max_predictions, mock_samples;
  std::optional<double> classifier_dropout;

  std::optional<int64_t> micro_batch, global_batch, train_iterations, train_samples, epochs;
  bool recompute_activations = false;
  std::optional<Recompute> recompute_granularity;
  std::optional<double> exit_duration_minutes;

  std::optional<double> adam_epsilon, sgd_momentum;
  std::optional<int64_t> decay_iterations, decay_samples, warmup_iterations, warmup_samples;
  std::optional<double> warmup_fraction, start_weight_decay, end_weight_decay;

  std::optional<Precision> precision;
  std::optional<bool> tf32x3_attention;
  std::optional<Fp8Config::Format> fp8_format;
  std::optional<std::string> fp8_recipe;
  bool first_last_bf16 = false;
  std::optional<int64_t> bf16_layers_at_start, bf16_layers_at_end;
  bool fp16 = false, bf16 = false, tf32 = false, fp64 = false;

  std::vector<std::string> train_paths, valid_paths, test_paths;
  std::optional<std::string> tokenizer;

  int context_parallel = 1, expert_parallel = 1;
  std::optional<ShardingStrategy> sharding;
  LaunchOptions launch;
  std::string rehearse, network;
  std::optional<int> processes, port, local_rank;

  std::optional<int64_t> stride, eval_interval, eval_iterations;
  std::optional<EvalMode> eval_mode;
  bool no_gelu_fusion = false;

  std::optional<int> plan_gpus, plan_nodes, plan_gpus_per_node;

  std::vector<std::string> ignored;  // accepted for compatibility: "--flag (why)"

  // Whether one of these was given; the first of them that was, else null.
  const char* first_given(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (given.count(name) > 0) return name;
    return nullptr;
  }
};

// Defaults that depend on other flags, presets, and all checks of several values.
Config resolve(const Flags& flags, const StoredModels& stored, int world_size, Command command);

}  // namespace tally::train
