// Flags of the training: model, length, optimizer, precision.
#include "src/config/flags.h"

#include "src/config/flag_group.h"

namespace tally::train {
namespace {

void declare_model(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Model");
  g.text(
      "--model", &f->model, "NAME",
      "Sizes of GPT-2: gpt2 (124M), gpt2-medium (355M), gpt2-large (774M), gpt2-xl (1.5B); of "
      "Llama 3: llama-1b, llama-8b; of encoders: bert-base (110M), bert-large (340M), distilbert "
      "(66M); the flags below override it (default: the sizes of gpt2)");
  g.number("--num-layers", &f->layers, 1, "Transformer layers");
  g.number("--hidden-size", &f->hidden, 1, "Width of the residual stream");
  g.number("--num-attention-heads", &f->heads, 1,
           "Attention heads; must divide --hidden-size unless --kv-channels is given");
  g.number(
      "--ffn-hidden-size", &f->ffn, 1,
      "Width of the MLP (default: 4 x --hidden-size; with --swiglu two thirds of that, a multiple "
      "of 64)");
  g.toggle(
      "--swiglu", &f->swiglu,
      "SwiGLU instead of GELU. It goes with --normalization RMSNorm, --disable-bias-linear and "
      "--position-embedding-type rope: the blocks of Llama");
  g.text("--normalization", &f->normalization, "NAME",
         "LayerNorm (default) or RMSNorm, which goes with --swiglu");
  g.toggle("--disable-bias-linear", &f->disable_bias_linear,
           "Linear layers without biases; goes with --swiglu");
  g.toggle("--add-qkv-bias", &f->qkv_bias,
           "Biases of queries, keys and values with --disable-bias-linear (Qwen 2)");
  g.toggle("--qk-layernorm", &f->qk_norm,
           "A norm of each head of queries and of keys; goes with --swiglu (Qwen 3)");
  g.toggle("--group-query-attention", &f->grouped_queries,
           "Fewer heads of keys and values than of queries; goes with --swiglu");
  g.number("--num-query-groups", &f->query_groups, 1,
           "Heads of keys and values with --group-query-attention; must divide "
           "--num-attention-heads (default: 1)");
  g.number("--kv-channels", &f->kv_channels, 1,
           "Dimensions of a head; goes with --swiglu (default: --hidden-size / "
           "--num-attention-heads)");
  g.number("--seq-length", &f->sequence, 1,
           "Tokens of a sample (default: 1024; encoders: 128, with --task squad 384)");
  g.number(
      "--max-position-embeddings", &f->max_positions, 1,
      "Rows of the learned position table, at least --seq-length (default: --seq-length; 1024 or "
      "more with --model)");
  g.text("--position-embedding-type", &f->positions, "TYPE",
         "learned_absolute or rope (default: learned_absolute)");
  g.toggle("--use-rotary-position-embeddings", &f->rotary,
           "Same as --position-embedding-type rope");
  g.number(
       "--rotary-base", &f->rotary_base, 1.0,
       "Base of the rotary angles; 500000 for --model llama-..., rope_theta of config.json with "
       "--load or --load-hf")
      ->default_str("10000");
  g.toggle("--use-rope-scaling", &f->rope_scaling,
           "Stretch the slow rotations as Llama 3.1 does, by the four numbers that follow");
  g.number("--rope-scaling-factor", &f->rope_factor, 1.0, "How far (default: 8)");
  g.number("--rope-low-freq-factor", &f->rope_low, 0.0,
           "Rotations with fewer turns in the original positions are stretched whole (default: 1)");
  g.number("--rope-high-freq-factor", &f->rope_high, 0.0,
           "Those with more turns than this are not stretched (default: 4)");
  g.number("--rope-original-max-position-embeddings", &f->rope_positions, 1,
           "Positions before the stretching (default: 8192)");
  g.number("--rotary-percent", &f->rotary_percent, 0.0,
           "Share of each head's dimensions that rotates", 1.0)
      ->default_str("1");
  g.number(
      "--vocab-size", &f->vocabulary, 2,
      "Tokens of the vocabulary (default: the tokenizer's: 50257 for GPT2BPETokenizer, 257 for "
      "bytes)");
  g.number("--make-vocab-size-divisible-by", &f->vocabulary_multiple, 1,
           "The vocabulary is padded to a multiple of this times the tensor parallel size");
  g.toggle("--untie-embeddings-and-output-weights", &f->untied,
           "The output layer has weights of its own instead of the token embedding's");
  g.number("--layernorm-epsilon,--norm-epsilon", &f->layernorm_epsilon, 0.0,
           "Epsilon of LayerNorm and RMSNorm")
      ->default_str("1e-05");
  g.number("--init-method-std", &f->init_std, 0.0,
           "Standard deviation of the initial weights; a block's output layers: / sqrt(2 layers)");
  g.probability(
       "--hidden-dropout", &f->hidden_dropout,
       "Dropout after embedding, attention and MLP; with --load or --load-hf its config.json's "
       "unless given; 0 for --model llama-...")
      ->default_str("0.1");
  g.probability("--attention-dropout", &f->attention_dropout,
                "Dropout of attention probabilities; with --load or --load-hf its config.json's "
                "unless given; 0 for --model llama-...")
      ->default_str("0.1");
}

void declare_training(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Training");
  g.number("--micro-batch-size", &f->micro_batch, 1,
           "Samples of one forward and backward (default: 1)");
  g.number(
      "--global-batch-size", &f->global_batch, 1,
      "Samples of one optimizer step; micro batches beyond the first are accumulated (default: "
      "--micro-batch-size x data parallel size)");
  g.list("--rampup-batch-size", &f->rampup, "START INCREMENT SAMPLES",
         "Begin with a global batch of START samples and raise it by INCREMENT at a time to "
         "--global-batch-size, which it has after SAMPLES samples; needs --train-samples");
  g.number("--train-iters", &f->train_iterations, 1, "Optimizer steps to train");
  g.number("--train-samples", &f->train_samples, 1,
           "Samples to train, instead of --train-iters; whole steps only");
  g.number("--epochs", &f->epochs, 1,
           "Passes over the dataset, instead of --train-iters: its documents are joined, cut into "
           "blocks of --seq-length tokens (the rest is dropped), divided into training and "
           "validation blocks by --split and shuffled anew in every epoch; the validation loss is "
           "taken over all validation blocks after each epoch. Of an encoder, passes over its "
           "training samples, and the loss and the metrics on all of --valid-data-path after each");
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
  FlagGroup g(app, "Optimizer");
  g.text("--optimizer", &f->optimizer, "NAME",
         "adam (AdamW with decoupled weight decay), lamb (its steps scaled by the norm of each "
         "matrix, "
         "as in NVIDIA's BERT) or sgd (with momentum; weight decay is added to the gradient)");
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
  g.number("--lr-warmup-init", &f->adam.warmup_init, 0.0,
           "Learning rate that the warm-up starts at");
  g.number("--weight-decay", &f->adam.weight_decay, 0.0,
           "Weight decay of matrices; biases and norms have none");
  g.text("--weight-decay-incr-style", &f->adam.weight_decay_style, "STYLE",
         "constant, or linear or cosine: from --start-weight-decay at the first sample to "
         "--end-weight-decay at the last");
  g.number("--start-weight-decay", &f->start_weight_decay, 0.0, "Weight decay of the first step");
  g.number("--end-weight-decay", &f->end_weight_decay, 0.0,
           "Weight decay at the end, at least --start-weight-decay");
  g.probability("--adam-beta1", &f->adam.beta1, "Decay of the first moment of Adam and LAMB");
  g.probability("--adam-beta2", &f->adam.beta2, "Decay of the second moment of Adam and LAMB");
  g.number("--adam-eps", &f->adam_epsilon, 0.0,
           "Epsilon of Adam and LAMB (default: 1e-08; 1e-06 with --optimizer lamb, as in apex)");
  g.probability("--sgd-momentum", &f->sgd_momentum, "Momentum of --optimizer sgd")
      ->default_str("0.9");
  g.number("--clip-grad", &f->adam.clip, 0.0, "Largest norm of the whole gradient; 0: no clipping");
}

void declare_precision(CLI::App* app, Flags* f) {
  FlagGroup g(app, "Precision");
  g.text("--precision", &f->precision, "NAME",
         "fp32 (default, no TF32; on Hopper GPUs GEMMs may accumulate in float64), tf32x3 (fp32 "
         "whose GEMMs are three TF32 GEMMs each, nearly as accurate), tf32, bf16, fp16 or fp64; "
         "master weights, optimizer state and accumulation are fp32 or wider in all of them");
  g.text("--fp32-attention", &f->fp32_attention, "NAME",
         "GEMMs of attention with --precision fp32: ieee (default), or tf32x3, as PyTorch's own "
         "float32 kernel computes them (heads of up to 128)");
  g.toggle("--bf16", &f->bf16, "Same as --precision bf16");
  g.toggle("--fp16", &f->fp16, "Same as --precision fp16, with loss scaling");
  g.toggle("--tf32", &f->tf32, "Same as --precision tf32");
  g.toggle("--fp64", &f->fp64, "Same as --precision fp64");
  g.text("--fp8-format", &f->fp8_format, "NAME",
         "With --bf16, the GEMMs of the blocks in FP8: hybrid (E4M3, gradients in E5M2) or e4m3");
  g.text("--fp8-recipe", &f->fp8_recipe, "NAME",
         "How FP8's scales are found: tensorwise (each matrix by its own largest magnitude)");
  g.toggle("--first-last-layers-bf16", &f->first_last_bf16,
           "With --fp8-format, the first and the last block stay in bf16");
  g.number("--num-layers-at-start-in-bf16", &f->bf16_layers_at_start, 0,
           "So many at the start instead, with --first-last-layers-bf16 (default: 1)");
  g.number("--num-layers-at-end-in-bf16", &f->bf16_layers_at_end, 0,
           "So many at the end, likewise (default: 1)");
  g.number("--loss-scale", &f->loss_scale, 1.0,
           "Constant loss scale of fp16 (default: adjusted while training)");
  g.number("--initial-loss-scale", &f->initial_loss_scale, 1.0, "First loss scale of fp16");
  g.number("--min-loss-scale", &f->min_loss_scale, 1e-9, "Smallest loss scale of fp16");
  g.number("--loss-scale-window", &f->loss_scale_window, 1,
           "Steps without overflow after which the loss scale doubles");
  g.number("--hysteresis", &f->hysteresis, 1,
           "The first overflow that halves the loss scale, counted since it last doubled, in a row "
           "or not; each further one halves it, too");
}

}  // namespace

void declare_training_flags(CLI::App* app, Flags* flags) {
  declare_model(app, flags);
  declare_training(app, flags);
  declare_optimizer(app, flags);
  declare_precision(app, flags);
}

}  // namespace tally::train
