#include "src/config/flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

namespace tally::train {
namespace {

// Python accepts underscores between digits (300_000_000), and so do benchmark files.
std::string without_underscores(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between_digits = text[i] == '_' && i > 0 && i + 1 < text.size() &&
                                std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                                std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if (!between_digits) out += text[i];
  }
  return out;
}

template <typename T>
T parse_number(const std::string& flag, const std::string& given, T least, T most) {
  const std::string text = without_underscores(given);
  T value{};
  const char* first = text.data();
  const char* last = first + text.size();
  if (first != last && *first == '+') ++first;
  const auto [end, error] = std::from_chars(first, last, value);
  const char* kind = std::is_floating_point_v<T> ? "number" : "whole number";
  if constexpr (std::is_unsigned_v<T>) {
    int64_t negative{};
    const auto sign = std::from_chars(first, last, negative);
    if (sign.ec == std::errc() && sign.ptr == last && negative < 0)
      throw CLI::ValidationError(flag, fmt::format("{} is too small: at least {}", given, least));
  }
  if (error == std::errc::result_out_of_range)
    throw CLI::ValidationError(flag, fmt::format("{} is too large", given));
  if (error != std::errc() || end != last)
    throw CLI::ValidationError(flag, fmt::format("'{}' is not a {}", given, kind));
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value))
      throw CLI::ValidationError(flag, fmt::format("'{}' is not a {}", given, kind));
  }
  if (value < least)
    throw CLI::ValidationError(flag, fmt::format("{} is too small: at least {}", given, least));
  if (std::is_floating_point_v<T> && value > most &&
      most == static_cast<T>(std::nextafter(1.0, 0.0)))
    throw CLI::ValidationError(flag, fmt::format("{} is too large: it must be below 1", given));
  if (value > most)
    throw CLI::ValidationError(flag, fmt::format("{} is too large: at most {}", given, most));
  return value;
}

template <typename T>
struct Unwrapped {
  using type = T;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using type = T;
};

// Declares flags of one group. The last of repeated flags holds, as in argparse.
class Group {
 public:
  Group(CLI::App* app, std::string name) : app_(app), name_(std::move(name)) {}

  template <typename Field>
  CLI::Option* number(const std::string& flag, Field* field, typename Unwrapped<Field>::type least,
                      const std::string& help,
                      typename Unwrapped<Field>::type most =
                          std::numeric_limits<typename Unwrapped<Field>::type>::max()) {
    using T = typename Unwrapped<Field>::type;
    const std::string name = flag.substr(0, flag.find(','));
    auto* option = app_->add_option_function<std::string>(
        flag, [=](const std::string& text) { *field = parse_number<T>(name, text, least, most); },
        help);
    option->type_name(std::is_floating_point_v<T> ? "NUMBER" : "INT")->take_last()->group(name_);
    if constexpr (!std::is_same_v<Field, std::optional<T>>)
      option->default_str(fmt::format("{}", *field));
    return option;
  }
  // A number in [0, 1).
  template <typename Field>
  CLI::Option* probability(const std::string& flag, Field* field, const std::string& help) {
    return number(flag, field, 0.0, help, std::nextafter(1.0, 0.0));
  }
  template <typename Field>
  CLI::Option* text(const std::string& flag, Field* field, const std::string& type,
                    const std::string& help) {
    auto* option = app_->add_option_function<std::string>(
        flag, [field](const std::string& value) { *field = value; }, help);
    option->type_name(type)->take_last()->group(name_);
    if constexpr (std::is_same_v<Field, std::string>) {
      if (!field->empty()) option->default_str(*field);
    }
    return option;
  }
  CLI::Option* list(const std::string& flag, std::vector<std::string>* field,
                    const std::string& type, const std::string& help) {
    return app_->add_option(flag, *field, help)->type_name(type)->group(name_)->expected(1, -1);
  }
  CLI::Option* toggle(const std::string& flag, bool* field, const std::string& help) {
    return app_->add_flag(flag, *field, help)->group(name_);
  }
  // Accepted because command lines written for Megatron-LM carry it; `why` says why nothing
  // follows.
  void ignored(const std::string& flag, bool takes_value, const std::string& why, Flags* flags) {
    const auto note = [flags, flag, why] {
      const std::string entry = fmt::format("{} ({})", flag, why);
      for (const std::string& known : flags->ignored)
        if (known == entry) return;
      flags->ignored.push_back(entry);
    };
    CLI::Option* option = takes_value ? app_->add_option_function<std::string>(
                                                flag, [note](const std::string&) { note(); }, why)
                                            ->type_name("VALUE")
                                            ->take_last()
                                      : app_->add_flag_callback(flag, note, why);
    option->group(name_);
  }

 private:
  CLI::App* app_;
  std::string name_;
};

void declare_model(CLI::App* app, Flags* f) {
  Group g(app, "Model");
  g.text("--model", &f->model, "NAME",
         "Sizes of GPT-2: gpt2 (124M), gpt2-medium (355M), gpt2-large (774M), gpt2-xl (1.5B); "
         "the flags below override it (default: the sizes of gpt2)");
  g.number("--num-layers", &f->layers, 1, "Transformer layers");
  g.number("--hidden-size", &f->hidden, 1, "Width of the residual stream");
  g.number("--num-attention-heads", &f->heads, 1, "Attention heads; must divide --hidden-size");
  g.number("--ffn-hidden-size", &f->ffn, 1, "Width of the MLP (default: 4 x --hidden-size)");
  g.number("--seq-length", &f->sequence, 1, "Tokens of a sample (default: 1024)");
  g.number(
      "--max-position-embeddings", &f->max_positions, 1,
      "Rows of the learned position table, at least --seq-length (default: --seq-length; 1024 or "
      "more with --model)");
  g.text("--position-embedding-type", &f->positions, "TYPE",
         "learned_absolute or rope (default: learned_absolute)");
  g.toggle("--use-rotary-position-embeddings", &f->rotary,
           "Same as --position-embedding-type rope");
  g.number("--rotary-base", &f->rotary_base, 1.0, "Base of the rotary angles")
      ->default_str("10000");
  g.number("--rotary-percent", &f->rotary_percent, 0.0,
           "Share of each head's dimensions that rotates", 1.0)
      ->default_str("1");
  g.number(
      "--vocab-size", &f->vocabulary, 2,
      "Tokens of the vocabulary (default: the tokenizer's: 50257 for GPT2BPETokenizer, 257 for "
      "bytes)");
  g.number("--make-vocab-size-divisible-by", &f->vocabulary_multiple, 1,
           "The vocabulary is padded to a multiple of this times the tensor parallel size");
  g.number("--layernorm-epsilon,--norm-epsilon", &f->layernorm_epsilon, 0.0, "Epsilon of LayerNorm")
      ->default_str("1e-05");
  g.number("--init-method-std", &f->init_std, 0.0,
           "Standard deviation of the initial weights; a block's output layers: / sqrt(2 layers)");
  g.probability(
       "--hidden-dropout", &f->hidden_dropout,
       "Dropout after embedding, attention and MLP; with --load or --load-hf its config.json's "
       "unless given")
      ->default_str("0.1");
  g.probability("--attention-dropout", &f->attention_dropout,
                "Dropout of attention probabilities; with --load or --load-hf its config.json's "
                "unless given")
      ->default_str("0.1");
}

void declare_training(CLI::App* app, Flags* f) {
  Group g(app, "Training");
  g.number("--micro-batch-size", &f->micro_batch, 1,
           "Samples of one forward and backward (default: 1)");
  g.number(
      "--global-batch-size", &f->global_batch, 1,
      "Samples of one optimizer step; micro batches beyond the first are accumulated (default: "
      "--micro-batch-size x data parallel size)");
  g.number("--train-iters", &f->train_iterations, 1, "Optimizer steps to train");
  g.number("--train-samples", &f->train_samples, 1,
           "Samples to train, instead of --train-iters; whole steps only");
  g.number("--epochs", &f->epochs, 1,
           "Passes over the dataset, instead of --train-iters: its documents are joined, cut into "
           "blocks of --seq-length tokens (the rest is dropped), divided into training and "
           "validation blocks by --split and shuffled anew in every epoch; the validation loss is "
           "taken over all validation blocks after each epoch");
  g.number("--seed", &f->seed, uint64_t{0}, "Seed of weights, data order and dropout");
  g.toggle("--recompute-activations", &f->recompute_activations,
           "Same as --recompute-granularity selective");
  g.text("--recompute-granularity", &f->recompute_granularity, "WHAT",
         "Recompute in the backward pass instead of storing: selective or full (default: nothing)");
  g.number("--exit-interval", &f->exit_interval, 1, "Stop after a step whose number this divides");
  g.number("--exit-duration-in-mins", &f->exit_duration_minutes, 0.0,
           "Stop after this many minutes: the step is finished, record and checkpoint are written");
}

void declare_optimizer(CLI::App* app, Flags* f) {
  Group g(app, "Optimizer");
  g.text("--optimizer", &f->optimizer, "NAME", "adam: AdamW with decoupled weight decay");
  g.number("--lr", &f->adam.lr, 0.0, "Highest learning rate");
  g.number("--min-lr", &f->adam.min_lr, 0.0, "Learning rate after the decay");
  g.text("--lr-decay-style", &f->adam.decay_style, "STYLE", "constant, linear or cosine");
  g.number("--lr-decay-iters", &f->decay_iterations, 1,
           "Steps of the decay, warm-up included (default: --train-iters)");
  g.number("--lr-decay-samples", &f->decay_samples, 1,
           "Samples of the decay, warm-up included (default: --train-samples)");
  g.number("--lr-warmup-iters", &f->warmup_iterations, 0, "Steps of linear warm-up");
  g.number("--lr-warmup-samples", &f->warmup_samples, 0, "Samples of linear warm-up");
  g.number("--lr-warmup-fraction", &f->warmup_fraction, 0.0,
           "Linear warm-up as a share of the decay", 1.0);
  g.number("--weight-decay", &f->adam.weight_decay, 0.0,
           "Weight decay of matrices; biases and norms have none");
  g.probability("--adam-beta1", &f->adam.beta1, "Decay of Adam's first moment");
  g.probability("--adam-beta2", &f->adam.beta2, "Decay of Adam's second moment");
  g.number("--adam-eps", &f->adam.epsilon, 0.0, "Epsilon of Adam");
  g.number("--clip-grad", &f->adam.clip, 0.0, "Largest norm of the whole gradient; 0: no clipping");
}

void declare_precision(CLI::App* app, Flags* f) {
  Group g(app, "Precision");
  g.text(
      "--precision", &f->precision, "NAME",
      "fp32 (default, no TF32; on Hopper GPUs products may be added up in float64), tf32x3 (fp32 "
      "whose products are three TF32 products, nearly as accurate), tf32, bf16, fp16 or fp64; "
      "master weights, optimizer state and accumulation are fp32 or wider in all of them");
  g.text("--fp32-attention", &f->fp32_attention, "NAME",
         "Products of attention with --precision fp32: ieee (default), or tf32x3, as PyTorch's own "
         "float32 kernel takes them (heads of up to 128)");
  g.toggle("--bf16", &f->bf16, "Same as --precision bf16");
  g.toggle("--fp16", &f->fp16, "Same as --precision fp16, with loss scaling");
  g.toggle("--tf32", &f->tf32, "Same as --precision tf32");
  g.toggle("--fp64", &f->fp64, "Same as --precision fp64");
  g.number("--loss-scale", &f->loss_scale, 1.0,
           "Constant loss scale of fp16 (default: adjusted while training)");
  g.number("--initial-loss-scale", &f->initial_loss_scale, 1.0, "First loss scale of fp16");
  g.number("--min-loss-scale", &f->min_loss_scale, 0.0, "Smallest loss scale of fp16");
  g.number("--loss-scale-window", &f->loss_scale_window, 1,
           "Steps without overflow after which the loss scale doubles");
  g.number("--hysteresis", &f->hysteresis, 1, "Overflows in a row before the loss scale halves");
}

void declare_data(CLI::App* app, Flags* f) {
  Group g(app, "Data");
  g.list("--data-path", &f->data.paths, "PREFIX",
         "Dataset made by 'tally-train prepare' or Megatron-LM: PREFIX.bin and PREFIX.idx; several "
         "are blended when each has its weight before it: 0.7 A 0.3 B");
  g.toggle("--mock-data", &f->data.mock, "Random tokens instead of a dataset, for measuring");
  g.text("--split", &f->data.split, "A,B,C",
         "Weights of training, validation and test documents; evaluate reads them all");
  g.text("--tokenizer-type", &f->tokenizer, "NAME",
         "GPT2BPETokenizer (default) or bytes; decides the vocabulary's size");
  g.text("--vocab-file", &f->data.vocab_file, "FILE",
         "vocab.json of GPT2BPETokenizer, or a tokenizer.json alone; training only copies it "
         "beside what it saves");
  g.text("--merge-file", &f->data.merge_file, "FILE", "merges.txt of GPT2BPETokenizer, likewise");
}

void declare_output(CLI::App* app, Flags* f) {
  Group g(app, "Output, checkpoints, evaluation");
  g.number("--log-interval", &f->log_interval, 1, "Steps between log lines");
  g.text("--record", &f->record, "FILE",
         "Write a JSON record of the run (docs/record.md); replaces no file but an older record");
  g.text(
      "--save", &f->save, "DIR",
      "Write checkpoints to DIR: at the end, when asked to stop, and every --save-interval; a DIR "
      "that holds checkpoints is refused unless --load goes on from them");
  g.number("--save-interval", &f->save_interval, 1, "Steps between checkpoints");
  g.text(
      "--load", &f->load, "DIR",
      "Resume from the newest checkpoint in DIR, or from DIR where it is an iter_ folder; an empty "
      "DIR starts from scratch");
  g.text(
      "--load-hf", &f->load_hf, "DIR",
      "Start from a GPT-2 of Hugging Face: model.safetensors (or its shards) and config.json, "
      "which sets the model's sizes; vocab.json and merges.txt, or tokenizer.json, where DIR has "
      "them (docs/real-weights.md)");
  g.text("--save-hf", &f->save_hf, "DIR",
         "Write the trained model to DIR as transformers reads it, at the end and when asked to "
         "stop: model.safetensors in the run's precision, config.json, and the tokenizer's files "
         "where they are known; a DIR that holds a model is refused unless --load goes on with its "
         "training");
  g.toggle("--exit-on-missing-checkpoint", &f->exit_on_missing_checkpoint,
           "With --load: a DIR without a checkpoint is an error");
  g.number("--eval-interval", &f->eval_interval, 1,
           "Steps between evaluations on the validation split (default: none, or 1000 with "
           "--eval-iters)");
  g.number("--eval-iters", &f->eval_iterations, 0,
           "Global batches of an evaluation (default: 100 with --eval-interval)");
}

void declare_evaluation(CLI::App* app, Flags* f) {
  Group g(app, "tally-train evaluate");
  g.text("--text", &f->text, "FILE",
         "Evaluate on this plain text, gzip'd or not, as one document, instead of --data-path");
  g.number("--stride", &f->stride, 1,
           "Tokens from the start of one block of --seq-length to the next one's; every token but "
           "the text's first is scored once, in the first block that reaches it, so that a smaller "
           "stride gives more context (default: --seq-length)");
}

void declare_device(CLI::App* app, Flags* f) {
  Group g(app, "Device");
  g.text("--device", &f->device, "NAME", "auto (a GPU when there is one), cpu, cuda or cuda:N");
  g.toggle("--reference", &f->reference,
           "Train the autograd reference model: slow and obviously right");
  g.toggle("--no-cuda-graph", &f->no_cuda_graph,
           "Launch every kernel of a step instead of a recorded graph");
  g.text(
      "--no-fusion", &f->no_fusion, "LIST",
      "Shortcuts of the step to leave out, separated by commas: residual, bias-sums, qkv-bias, "
      "overwrite, gelu, gelu-slope, bias, overlap, late-update, float64, attention, head, or all");
  g.toggle("--deterministic", &f->deterministic, "Same bits in every run on the same machine");
}

void declare_parallel(CLI::App* app, Flags* f) {
  Group g(app, "Parallelism");
  g.number("--tensor-model-parallel-size", &f->tensor_parallel, 1,
           "Processes that share each layer; this version takes 1");
  g.number("--pipeline-model-parallel-size", &f->pipeline_parallel, 1,
           "Processes that share the layers; this version takes 1");
  g.number("--num-layers-per-virtual-pipeline-stage", &f->virtual_pipeline_layers, 1,
           "Layers of a stage of the interleaved pipeline schedule");
  g.toggle("--sequence-parallel", &f->sequence_parallel,
           "Split norms and dropout over the tensor parallel processes");
  g.toggle(
      "--use-distributed-optimizer", &f->distributed_optimizer,
      "Split optimizer state over the data parallel processes; this version does not, and refuses "
      "it where there are several");
  g.number("--ddp-bucket-size", &f->gradient_bucket, 0,
           "Gradients that data parallel processes add at once while the backward pass goes on; 0: "
           "all after it");
  g.number("--check-weight-hash-across-dp-replicas-interval", &f->weight_check_interval, 1,
           "Steps between checks that all processes have the same weights (default: at the start "
           "only)");
}

void declare_launch(CLI::App* app, Flags* f) {
  Group g(app, "Processes (docs/distributed.md)");
  g.number("--nproc-per-node", &f->processes, 1,
           "Start this many processes on this host, one a GPU; under srun with one task a node, on "
           "every node");
  g.text("--master-addr", &f->launch.address, "HOST",
         "Where rank 0 is (default: MASTER_ADDR, this host, or the first of Slurm's hosts)");
  g.number("--master-port", &f->port, 1,
           "Port that rank 0 listens on (default: MASTER_PORT, or made of the job's number)",
           65535);
  g.text("--master-addr-suffix", &f->launch.address_suffix, "TEXT",
         "Appended to the first label of the host name that Slurm gives, where that names a faster "
         "interface: i makes node3i.site of node3.site");
  g.text("--network-interface", &f->launch.interface, "NAME",
         "Interface for messages between hosts, as ib0 (NCCL_SOCKET_IFNAME where that is not set)");
  g.text("--distributed-backend", &f->launch.backend, "NAME",
         "What carries gradients: nccl (GPUs), mpi or sockets (CPUs; gloo is the same) (default: "
         "nccl on "
         "GPUs; else mpi where an MPI launcher started the processes, sockets where none did)");
  g.number("--distributed-timeout-minutes", &f->launch.timeout_minutes, 0.0,
           "How long processes wait for each other at the start (default: 10), for a sign of life "
           "of one that is stopped or hangs (default: 1), and, with --nproc-per-node, for the end "
           "of those that were asked to stop before they are killed (default: 10)");
  g.toggle("--prefix-output", &f->launch.prefix,
           "Begin every line of output with the process's rank: [rank3]:");
}

void declare_ignored(CLI::App* app, Flags* f) {
  Group g(app, "Accepted for Megatron-LM's command lines, without effect");
  const char* attention = "attention always runs the fastest kernel that serves it";
  const char* fused = "fused kernels are always used";
  const char* tensorboard = "no TensorBoard log is written, see --record";
  g.ignored("--use-flash-attn", false, attention, f);
  g.ignored("--overlap-grad-reduce", false, "always done, see --ddp-bucket-size", f);
  for (const char* flag :
       {"--tensorboard-dir", "--tensorboard-queue-size", "--tensorboard-log-interval"})
    g.ignored(flag, true, tensorboard, f);
  for (const char* flag :
       {"--log-timers-to-tensorboard", "--log-batch-size-to-tensorboard",
        "--log-validation-ppl-to-tensorboard", "--log-memory-to-tensorboard",
        "--log-world-size-to-tensorboard", "--no-log-learnig-rate-to-tensorboard",
        "--no-log-loss-scale-to-tensorboard"})
    g.ignored(flag, false, tensorboard, f);
  for (const char* flag : {"--no-masked-softmax-fusion", "--no-bias-gelu-fusion",
                           "--no-bias-dropout-fusion", "--no-gradient-accumulation-fusion"})
    g.ignored(flag, false, fused, f);
  g.ignored("--recompute-method", true, "every layer is treated alike", f);
  g.ignored("--recompute-num-layers", true, "every layer is treated alike", f);
  g.ignored("--accumulate-allreduce-grads-in-fp32", false,
            "gradients are always accumulated in fp32", f);
  g.ignored("--attention-softmax-in-fp32", false, "softmax is always computed in fp32", f);
  g.ignored("--no-query-key-layer-scaling", false, "never applied", f);
  g.ignored("--no-async-tensor-model-parallel-allreduce", false,
            "no tensor parallelism in this run", f);
  g.ignored("--data-impl", true, "datasets are memory-mapped", f);
  g.ignored("--dataloader-type", true, "samples are drawn in one order", f);
  g.ignored("--num-workers", true, "one thread reads ahead", f);
  g.ignored("--DDP-impl", true, "gradients lie in one flat buffer", f);
  g.ignored("--timing-log-level", true, "step times are in the record", f);
}

}  // namespace

void declare_flags(CLI::App* app, Flags* flags) {
  declare_model(app, flags);
  declare_training(app, flags);
  declare_optimizer(app, flags);
  declare_precision(app, flags);
  declare_data(app, flags);
  declare_output(app, flags);
  declare_evaluation(app, flags);
  declare_device(app, flags);
  declare_parallel(app, flags);
  declare_launch(app, flags);
  declare_ignored(app, flags);
}

}  // namespace tally::train
