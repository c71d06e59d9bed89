// Everything a training run was asked to do, checked. args.cc makes it once; nothing reads a flag
// later.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "src/device/mlp_activation.h"
#include "src/device/policy.h"
#include "src/device/rotary.h"
#include "src/device/tensor.h"
#include "src/ops/fp8/scaling.h"
#include "src/parallel/control/launch.h"

namespace tally::train {

enum class Command { train, evaluate };
// tf32x3: float32 whose GEMMs are three TF32 GEMMs, with float32's accuracy.
enum class Precision { f64, f32, tf32x3, tf32, bf16, f16 };
enum class Positions { learned, rotary };
// The purpose that an encoder is trained for: masked tokens (and the next sentence); classes of
// texts; answers in a paragraph. GPT is a language model.
enum class Task { language_model, pretraining, classification, question_answering };
enum class Recompute { none, selective, full };
// --optimizer: AdamW, LAMB, or SGD with momentum.
enum class OptimizerKind { adam, lamb, sgd };
// The format of the log lines: Megatron-LM's at the commit of the JUPITER benchmark and with its
// patch, or today's.
enum class LogFormat { jupiter, megatron };
// The processes of an evaluation come to one metric in one of two ways: each scores its own samples
// and the sums are added, or rank 0 scores the answers of all and broadcasts the metric.
enum class EvalMode { reduce, gather };

// The part of the optimizer's work that the replicas of data parallelism share. `weights` is
// refused.
enum class ShardingStrategy { none, state, gradients, weights };

// The GEMMs of the blocks that are in FP8 (--fp8-format, src/nn/fp8.h).
struct Fp8Config {
  enum class Format : uint8_t {
    none,
    hybrid,  // e4m3 forward, e5m2 for gradients
    e4m3
  };
  // Tensor cores take FP8 in pieces of 16 bytes, along every dimension of a layer's GEMMs.
  static constexpr int64_t multiple = 16;
  Format format = Format::none;
  Fp8Recipe recipe = fp8_recipes[0];
  int64_t layers_at_start = 0, layers_at_end = 0;  // layers that stay in bf16

  bool on() const { return format != Format::none; }
  bool serves(int64_t layer, int64_t layers) const {
    return on() && layer >= layers_at_start && layer < layers - layers_at_end;
  }
  // Empty where nothing is in FP8.
  std::string recipe_name() const { return on() ? std::string(recipe.name) : std::string(); }
  DType gradients() const { return format == Format::hybrid ? DType::e5m2 : DType::e4m3; }
  // Micro batches of sequences of so many tokens come in multiples of this many.
  int64_t micro_batch_unit(int64_t sequence) const {
    return on() ? multiple / std::gcd(multiple, sequence) : 1;
  }
};

enum class NormKind : uint8_t {
  layer,
  rms  // without bias and mean
};
// A norm stands before a block's branches, or after what they add to the residual stream.
enum class NormPosition : uint8_t { before, after };

// The computation of a transformer block (src/nn/block.h). GPT-2's is the default.
struct BlockSpec {
  NormKind norm = NormKind::layer;
  NormPosition norm_position = NormPosition::before;
  MlpActivation mlp = MlpActivation::gelu_tanh;
  bool biases = true;     // the linear layers have them
  bool qkv_bias = false;  // only Q, K and V have them (Qwen 2)
  bool causal = true;     // a token does not see those behind it
  bool qk_norm = false;   // RMSNorm of each head of Q and K before the rotation

  bool gated() const { return entry_of(mlp).gated; }
};

struct ModelConfig {
  // "gpt", "llama", "bert", "distilbert": how config.json and files of weights are written.
  const std::string& kind() const { return kind_; }
  // Sets what all models of a kind have in common: their blocks, and what is not in config.json.
  void set_kind(const std::string& kind);

  BlockSpec block;
  // An encoder's is another one.
  Task task = Task::language_model;
  bool language_model() const { return task == Task::language_model; }
  std::string preset;  // "gpt2-medium" when --model named one, else empty
  int64_t layers = 12, hidden = 768, heads = 12, ffn = 3072;
  int64_t max_positions = 1024;
  int64_t vocabulary = 50257;         // the tokenizer's
  int64_t padded_vocabulary = 50304;  // a multiple of make_vocab_size_divisible_by
  Positions positions = Positions::learned;
  double rotary_base = 10000, rotary_fraction = 1;
  RotaryScaling rotary_scaling;
  double layernorm_epsilon = 1e-5;
  double init_std = 0.02;  // output layers of a block: / sqrt(2 layers)
  double hidden_dropout = 0.1, attention_dropout = 0.1;  // Megatron's defaults
  bool tied_embeddings = true;
  // Encoders. Rows of the table of token types; 0: there is none.
  int64_t token_types = 0;
  // BERT: the first token's state goes through a dense layer with tanh, which pre-training trains.
  // DistilBERT has a layer with ReLU before its classes alone.
  bool pooler = false;
  bool next_sentence = true;                 // pre-training predicts it with the pooler, too
  int64_t classes = 2;                       // classification's
  std::optional<double> classifier_dropout;  // the task's head's; empty: head_dropout()'s default
  // The dropout before the classes, and before DistilBERT's answers; empty where the task's head
  // has none. The defaults are those of transformers' configurations.
  std::optional<double> head_dropout() const {
    const bool answers = task == Task::question_answering && !pooler;
    if (task != Task::classification && !answers) return std::nullopt;
    return classifier_dropout.value_or(answers ? 0.1 : pooler ? hidden_dropout : 0.2);
  }
  bool predicts_next_sentence() const {
    return pooler && task == Task::pretraining && next_sentence;
  }
  // Kinds of labels, each with a loss of its own.
  int label_heads() const {
    return task == Task::question_answering || predicts_next_sentence() ? 2 : 1;
  }
  int64_t query_groups = 0;  // heads of K and V, each for as many heads of Q; 0: as many as of Q
  int64_t kv_channels = 0;   // dimensions of a head; 0: hidden / heads

  int64_t head_dim() const { return kv_channels > 0 ? kv_channels : hidden / heads; }
  int64_t kv_heads() const { return query_groups > 0 ? query_groups : heads; }
  // Columns of all heads of Q; of K, and of V; of Q, K and V; of the MLP's first GEMM, with SwiGLU
  // gates and ups.
  int64_t attention_width() const { return heads * head_dim(); }
  int64_t kv_width() const { return kv_heads() * head_dim(); }
  int64_t qkv_width() const { return attention_width() + 2 * kv_width(); }
  int64_t fc_width() const { return block.gated() ? 2 * ffn : ffn; }

 private:
  std::string kind_ = "gpt";
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adam;
  double lr = 1e-4, min_lr = 0;
  // The weight decay of the first step, and where it differs that of the last.
  double weight_decay = 0.01, end_weight_decay = 0.01;
  std::string weight_decay_style = "constant";  // constant, linear, cosine
  int64_t weight_decay_samples = 0;             // from the first to the last
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, clip = 1.0;
  double sgd_momentum = 0.9;
  std::string decay_style = "linear";  // constant, linear, cosine
  double warmup_init = 0;              // the rate that the warm-up starts at
  // All are in samples, however they were given. A fraction of the decay need not be a whole
  // number.
  double warmup_samples = 0;
  int64_t decay_samples = 0;
};

// Datasets and, where there are several, the weight of each.
struct Blend {
  std::vector<std::string> paths;
  std::vector<double> weights;  // empty: one prefix
};

struct DataConfig : Blend {  // --data-path, or --train-data-path
  // --train-data-path, --valid-data-path, --test-data-path: each dataset is used as a whole, and
  // `split` is not used.
  bool separate = false;
  Blend validation, test;
  std::string split = "969,30,1";
  std::string training_split() const { return separate ? "1" : split; }
  std::string tokenizer;  // GPT2BPETokenizer, bytes, BertWordPieceLowerCase, BertWordPieceCase
  std::string vocab_file, merge_file;
  bool mock = false;  // --mock-data: random tokens
  // Encoders. --pad: rows of --seq-length tokens instead of real tokens alone.
  bool pad = false;
  std::string mock_lengths;        // --mock-lengths (LengthDistribution); "": all --seq-length
  int64_t mock_samples = 1024;     // --mock-samples: of an epoch
  double mask_probability = 0.15;  // --mask-prob, of random tokens and of dynamic masking
  int64_t max_predictions = 0;     // --max-predictions-per-seq
  bool dynamic_masking = false;    // drawn anew for every epoch
  std::string text_column = "text", pair_column, label_column = "label";
  int64_t document_stride = 128, question_tokens = 64;  // SQuAD's
  bool squad_2 = false;                                 // questions may have no answer
  // The effects of the end-of-document token (src/data/tokens/documents.h).
  bool reset_position_ids = false, reset_attention_mask = false, eod_mask_loss = false;
};

// --rampup-batch-size: the global batch grows from `start` by `increment` during the first
// `samples` samples. Every size is used for the same number of samples. start 0: no ramp-up.
struct BatchRampup {
  int64_t start = 0, increment = 0, samples = 0;
};

// --rehearse and --network.
struct Rehearsal {
  bool asked = false;
  int stage = 0;
  // Bytes and seconds a message, between nodes and within one; rate 0: not given.
  double network_rate = 0, network_seconds = 0, node_rate = 0, node_seconds = 0;
};

// --plan: what a layout would need is printed, and nothing is trained (src/plan/).
struct PlanRequest {
  bool asked = false;
  std::string device;     // --plan-device: a GPU's name or its memory; "": not given
  int gpus_per_node = 4;  // --plan-gpus-per-node
  // 0, 1, 2: what data parallel ranks share of the optimizer's work; -1: as the run's flags say.
  int zero = -1;
  double network = 0;     // --plan-network: GB/s of each GPU to other nodes; 0: the GPU's default
  double efficiency = 0;  // --plan-efficiency: share of the peak rate that GEMMs reach; 0: default
  bool json = false;      // --plan-json
};

struct Config {
  Command command = Command::train;
  ModelConfig model;
  OptimizerConfig optimizer;
  DataConfig data;
  Precision precision = Precision::f32;
  Fp8Config fp8;  // bf16 only
  int64_t sequence = 1024;
  int64_t micro_batch = 1, global_batch = 1;
  bool per_token_loss = false;  // --calculate-per-token-loss
  BatchRampup rampup;
  int64_t train_iterations = 0;  // from --train-iters or --train-samples
  int64_t train_samples = 0;
  // --epochs: passes over the training blocks of a dataset, and blocks in one pass; else 0.
  int64_t epochs = 0, epoch_samples = 0;
  Recompute recompute = Recompute::none;
  uint64_t seed = 1234;
  double loss_scale = 0, initial_loss_scale = 4294967296.0, min_loss_scale = 1.0;
  int64_t loss_scale_window = 1000, hysteresis = 2;
  int tensor_parallel = 1, pipeline_parallel = 1, world_size = 1, data_parallel = 1;
  // This process's rank in the run and on its host; set by main.
  int rank = 0, local_rank = 0, local_size = 1;
  std::string distributed_backend;  // "nccl", "mpi", "sockets"; "": chosen from device and launcher
  std::string network_interface;    // "": any
  Rehearsal rehearsal;
  // Elements reduced at a time during the backward pass; 0: after the backward pass; unset:
  // whichever is faster on these links.
  std::optional<int64_t> gradient_bucket;
  bool peer_memory = true;            // false: --no-peer-memory
  int64_t weight_check_interval = 0;  // steps between checks that all ranks have the same weights
  LogFormat log_format = LogFormat::jupiter;
  bool log_throughput = false;  // --log-throughput, for LogFormat::megatron
  int64_t log_interval = 100, save_interval = 0, eval_interval = 0, eval_iterations = 0;
  bool time_phases = false;   // --time-phases
  bool energy = true;         // false: --no-energy
  bool explain = false;       // --explain
  int64_t witness_steps = 0;  // --witness-steps; 0: none
  bool find_batch = false;    // --find-batch: nothing is trained
  // --throughput-start and --throughput-stop: first and last iteration; 0, 0: not given.
  std::pair<int64_t, int64_t> throughput_window{0, 0};
  // --profile-start and --profile-stop likewise, and --profile-dir.
  std::pair<int64_t, int64_t> profile_window{0, 0};
  std::string profile_dir;
  bool profile_counters = false;     // --profile-counters: hardware counters instead of times
  double exit_duration_minutes = 0;  // 0: no limit
  int64_t exit_interval = 0;
  std::string save_dir, load_dir, record_path;
  // --load-hf and --save-hf: folders in Hugging Face's format.
  std::string load_hf_dir, save_hf_dir;
  bool skip_train = false;  // --skip-train: evaluate on validation and test data, do not train
  // --finetune: begin at iteration 0 with the weights of --load's checkpoint.
  bool finetune = false;
  bool load_optimizer = true, save_optimizer = true;  // --no-load-optim, --no-save-optim
  // evaluate: the folder of weights and config.json, --load-hf or --load's newest checkpoint.
  std::string model_dir;
  std::string text;    // evaluate: --text
  int64_t stride = 0;  // evaluate: tokens from the start of a block to the next one's
  EvalMode eval_mode = EvalMode::reduce;  // evaluate
  std::string predictions_path;           // evaluate: --predictions
  std::string device = "auto";            // auto, cpu, cuda, cuda:N
  bool reference = false;                 // --reference: the autograd model: slow, an oracle
  bool cuda_graph = true;
  Policy policy;
  bool sequence_parallel = false;
  // Replicas share the optimizer's state (ZeRO 1), and the gradients as well (ZeRO 2); only where
  // there are several.
  bool distributed_optimizer = false, shard_gradients = false;
  int64_t virtual_pipeline_layers = 0;      // --num-layers-per-virtual-pipeline-stage; 0: off
  bool exit_on_missing_checkpoint = false;  // else an empty --load directory is accepted
  PlanRequest plan;
  std::vector<std::string> command_line;
  std::vector<std::string>
      notices;             // sentences to print at the start: what was ignored or adjusted
  double target_loss = 0;  // --target-loss; 0: none
  int64_t eval_interval_samples = 0;  // --eval-interval-samples; 0: not given
  std::string mllog_path;
  std::vector<std::pair<std::string, std::string>> mllog_values;  // --mllog-set
  // Whether the training is interrupted for evaluations.
  bool evaluates() const {
    return (eval_interval > 0 || eval_interval_samples > 0) && eval_iterations > 0;
  }
  // Whether each loss term of a step is divided by its labels that count in the global batch, which
  // the processes add up. Else every label of a micro batch counts, or its mean loss is over those
  // that do (--eod-mask-loss, as in Megatron-LM), and each micro batch has the same weight.
  bool divides_by_labels() const {
    return !model.language_model() || (per_token_loss && data.eod_mask_loss);
  }
  int64_t micro_batches() const { return global_batch / (micro_batch * data_parallel); }
  // Micro batches that a loader makes in advance: all of a step where their labels are counted
  // first.
  int micro_batches_ahead() const;
  // The global batch of the step that starts after this many consumed samples.
  int64_t global_batch_at(int64_t consumed_samples) const;
  int64_t micro_batches_at(int64_t consumed_samples) const {
    return global_batch_at(consumed_samples) / (micro_batch * data_parallel);
  }
  DType compute_type() const;
};

constexpr bool uses_tf32(Precision p) {
  return p == Precision::tf32 || p == Precision::tf32x3;
}
const char* precision_name(Precision p);  // "fp64", "fp32", "tf32x3", "tf32", "bf16", "fp16"
// The precision as people read it: "bf16", or "bf16 with FP8 (hybrid, rowwise)".
std::string precision_text(const Config& config);
// Why a GPU of this name and compute capability does not compute this run's FP8; empty where it does,
// or where nothing is in FP8.
std::string fp8_refusal(const Config& config, const std::string& gpu, int capability);
const char* fp8_format_name(Fp8Config::Format f);  // "none", "hybrid", "e4m3"
const char* recompute_name(Recompute r);           // "none", "selective", "full"
const char* optimizer_name(OptimizerKind kind);    // "adam", "lamb", "sgd"
const char* task_name(Task task);  // "pretrain", "classify", "squad"; a language model's is ""
const char* eval_mode_name(EvalMode mode);  // "reduce", "gather"
// The smallest multiple of `multiple` that holds `vocabulary`: Megatron's padding.
int64_t pad_vocabulary(int64_t vocabulary, int64_t multiple);

}  // namespace tally::train
