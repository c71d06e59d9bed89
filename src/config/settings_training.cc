// Settings of the training: length, optimizer, precision.
#include "src/config/flags.h"
#include "src/config/resolve_parts.h"
#include "src/config/settings.h"

namespace tally::train {
namespace {

void add_length_settings(SettingTable& t, Flags& f) {
  Config& c = f.config;
  t.group("Training");
  t.number("--micro-batch-size", &f.micro_batch, 1,
           "Samples of one forward and backward (default: 1)")
      .record("training.micro_batch_size", c.micro_batch);
  t.number("--global-batch-size", &f.global_batch, 1,
           "Samples of one optimizer step; micro batches beyond the first are accumulated "
           "(default: --micro-batch-size x data parallel size)")
      .record("training.global_batch_size", c.global_batch);
  t.list("--rampup-batch-size", "START INCREMENT SAMPLES",
         "Begin with a global batch of START samples and raise it by INCREMENT at a time to "
         "--global-batch-size, which it has after SAMPLES samples; needs --train-samples",
         [&c](const std::vector<std::string>& words) { c.rampup = parse_rampup(words); })
      .record("training.rampup_batch_size",
              c.rampup.start == 0
                  ? nlohmann::ordered_json(nullptr)
                  : nlohmann::ordered_json({c.rampup.start, c.rampup.increment, c.rampup.samples}));
  t.number("--train-iters", &f.train_iterations, 1, "Optimizer steps to train")
      .record("training.train_iters", c.train_iterations)
      .called("the number of steps (--train-iters, --train-samples or --epochs)");
  t.number("--train-samples", &f.train_samples, 1,
           "Samples to train, instead of --train-iters; whole steps only")
      .record("training.train_samples", c.train_samples);
  t.number("--epochs", &f.epochs, 1,
           "Passes over the dataset, instead of --train-iters: its documents are joined, cut into "
           "blocks of --seq-length tokens (the rest is dropped), divided into training and "
           "validation blocks by --split and shuffled anew in every epoch; the validation loss is "
           "taken over all validation blocks after each epoch. Of an encoder, passes over its "
           "training samples, and the loss and the metrics on all of --valid-data-path after each")
      .record("training.epochs", c.epochs);
  t.follows("training.epoch_samples", c.epoch_samples, "the samples of an epoch (--epochs)");
  t.number("--seed", &c.seed, uint64_t{0}, "Seed of weights, data order and dropout")
      .record("training.seed");
  t.turns_on("--recompute-activations", &f.recompute_activations,
             "Same as --recompute-granularity selective");
  t.choice(
       "--recompute-granularity", &f.recompute_granularity, "WHAT",
       {{"selective", Recompute::selective}, {"full", Recompute::full}},
       "Recompute in the backward pass instead of storing: selective or full (default: nothing)")
      .record("training.recompute", recompute_name(c.recompute));
  t.number("--exit-interval", &c.exit_interval, 1, "Stop after a step whose number this divides")
      .record("training.exit_interval");
  t.number("--exit-duration-in-mins", &f.exit_duration_minutes, 0.0,
           "Stop after this many minutes: the step is finished, record and checkpoint are written")
      .record("training.exit_duration_in_mins", c.exit_duration_minutes);
}

const std::vector<Choice<std::string>> styles{
    {"constant", "constant"}, {"linear", "linear"}, {"cosine", "cosine"}};

void add_schedule_settings(SettingTable& t, Flags& f) {
  OptimizerConfig& o = f.config.optimizer;
  t.number("--lr", &o.lr, 0.0, "Highest learning rate").record("training.lr");
  t.number("--min-lr", &o.min_lr, 0.0, "Learning rate after the decay").record("training.min_lr");
  t.choice("--lr-decay-style", &o.decay_style, "STYLE", styles, "constant, linear or cosine")
      .record("training.lr_decay_style");
  t.number("--lr-decay-iters", &f.decay_iterations, 1,
           "Steps of the decay, warm-up included (default: --train-iters)");
  t.number("--lr-decay-samples", &f.decay_samples, 1,
           "Samples of the decay, warm-up included (default: --train-samples)")
      .record("training.lr_decay_samples", o.decay_samples)
      .called("lr_decay_samples (--lr-decay-iters or --lr-decay-samples)");
  t.number("--lr-warmup-iters", &f.warmup_iterations, 0, "Steps of linear warm-up");
  t.number("--lr-warmup-samples", &f.warmup_samples, 0, "Samples of linear warm-up")
      .record("training.lr_warmup_samples", whole_or_not(o.warmup_samples))
      .called("lr_warmup_samples (--lr-warmup-iters, --lr-warmup-samples or --lr-warmup-fraction)");
  t.number("--lr-warmup-fraction", &f.warmup_fraction, 0.0,
           "Linear warm-up as a share of the decay", 1.0);
  t.number("--lr-warmup-init", &o.warmup_init, 0.0, "Learning rate that the warm-up starts at")
      .record("training.lr_warmup_init");
}

void add_weight_decay_settings(SettingTable& t, Flags& f) {
  OptimizerConfig& o = f.config.optimizer;
  t.number("--weight-decay", &o.weight_decay, 0.0,
           "Weight decay of matrices; biases and norms have none")
      .record("training.weight_decay")
      .called("weight_decay (--weight-decay or --start-weight-decay)");
  t.choice("--weight-decay-incr-style", &o.weight_decay_style, "STYLE", styles,
           "constant, or linear or cosine: from --start-weight-decay at the first sample to "
           "--end-weight-decay at the last")
      .record("training.weight_decay_incr_style");
  t.number("--start-weight-decay", &f.start_weight_decay, 0.0, "Weight decay of the first step");
  t.number("--end-weight-decay", &f.end_weight_decay, 0.0,
           "Weight decay at the end, at least --start-weight-decay")
      .record("training.end_weight_decay", o.end_weight_decay);
}

void add_optimizer_settings(SettingTable& t, Flags& f) {
  OptimizerConfig& o = f.config.optimizer;
  t.group("Optimizer");
  t.choice("--optimizer", &o.kind, "NAME",
           {{"adam", OptimizerKind::adam},
            {"lamb", OptimizerKind::lamb},
            {"sgd", OptimizerKind::sgd},
            {"adamw", OptimizerKind::adam, false}},
           "adam (AdamW with decoupled weight decay), lamb (its steps scaled by the norm of each "
           "matrix, as in NVIDIA's BERT) or sgd (with momentum; weight decay is added to the "
           "gradient)")
      .record("training.optimizer");
  add_schedule_settings(t, f);
  add_weight_decay_settings(t, f);
  t.probability("--adam-beta1", &o.beta1, "Decay of the first moment of Adam and LAMB")
      .record("training.adam_beta1");
  t.probability("--adam-beta2", &o.beta2, "Decay of the second moment of Adam and LAMB")
      .record("training.adam_beta2");
  t.number("--adam-eps", &f.adam_epsilon, 0.0,
           "Epsilon of Adam and LAMB (default: 1e-08; 1e-06 with --optimizer lamb, as in apex)")
      .record("training.adam_eps", o.epsilon);
  t.probability("--sgd-momentum", &f.sgd_momentum, "Momentum of --optimizer sgd")
      .shown("0.9")
      .record("training.sgd_momentum", o.sgd_momentum);
  t.number("--clip-grad", &o.clip, 0.0, "Largest norm of the whole gradient; 0: no clipping")
      .record("training.clip_grad");
}

void add_loss_scale_settings(SettingTable& t, Config& c) {
  t.number("--loss-scale", &c.loss_scale, 1.0,
           "Constant loss scale of fp16 (default: adjusted while training)")
      .record("training.loss_scale");
  t.number("--initial-loss-scale", &c.initial_loss_scale, 1.0, "First loss scale of fp16")
      .record("training.initial_loss_scale");
  t.number("--min-loss-scale", &c.min_loss_scale, 1e-9, "Smallest loss scale of fp16")
      .record("training.min_loss_scale");
  t.number("--loss-scale-window", &c.loss_scale_window, 1,
           "Steps without overflow after which the loss scale doubles")
      .record("training.loss_scale_window");
  t.number("--hysteresis", &c.hysteresis, 1,
           "The first overflow that halves the loss scale, counted since it last doubled, in a row "
           "or not; each further one halves it, too")
      .record("training.hysteresis");
}

void add_fp8_settings(SettingTable& t, Flags& f) {
  const Fp8Config& fp8 = f.config.fp8;
  t.choice("--fp8-format", &f.fp8_format, "NAME",
           {{"hybrid", Fp8Config::Format::hybrid}, {"e4m3", Fp8Config::Format::e4m3}},
           "With --bf16, the GEMMs of the blocks in FP8: hybrid (E4M3, gradients in E5M2) or e4m3")
      .record("fp8_format", fp8_format_name(fp8.format));
  t.text("--fp8-recipe", &f.fp8_recipe, "NAME",
         "What has a scale of its own in FP8: tensorwise (each matrix), rowwise (each row), or "
         "blockwise (128 activations or gradients, 128 x 128 weights)")
      .offers({"tensorwise", "rowwise", "blockwise"})
      .record("fp8_recipe", text_or_null(fp8.recipe_name()));
  t.turns_on("--first-last-layers-bf16", &f.first_last_bf16,
             "With --fp8-format, the first and the last block stay in bf16");
  t.number("--num-layers-at-start-in-bf16", &f.bf16_layers_at_start, 0,
           "So many at the start instead, with --first-last-layers-bf16 (default: 1)")
      .record("num_layers_at_start_in_bf16", fp8.layers_at_start);
  t.number("--num-layers-at-end-in-bf16", &f.bf16_layers_at_end, 0,
           "So many at the end, likewise (default: 1)")
      .record("num_layers_at_end_in_bf16", fp8.layers_at_end);
}

void add_precision_settings(SettingTable& t, Flags& f) {
  t.group("Precision");
  t.choice("--precision", &f.precision, "NAME",
           {{"fp32", Precision::f32},
            {"tf32x3", Precision::tf32x3},
            {"tf32", Precision::tf32},
            {"bf16", Precision::bf16},
            {"fp16", Precision::f16},
            {"fp64", Precision::f64},
            {"float32", Precision::f32, false},
            {"f32", Precision::f32, false},
            {"bfloat16", Precision::bf16, false},
            {"float16", Precision::f16, false},
            {"float64", Precision::f64, false}},
           "fp32 (default, no TF32; on Hopper GPUs GEMMs may accumulate in float64), tf32x3 (fp32 "
           "whose GEMMs are three TF32 GEMMs each, nearly as accurate), tf32, bf16, fp16 or fp64; "
           "master weights, optimizer state and accumulation are fp32 or wider in all of them")
      .record("precision", precision_name(f.config.precision));
  t.choice("--fp32-attention", &f.tf32x3_attention, "NAME", {{"ieee", false}, {"tf32x3", true}},
           "GEMMs of attention with --precision fp32: ieee (default), or tf32x3, as PyTorch's own "
           "float32 kernel computes them (heads of up to 128)")
      .record("fp32_attention", f.config.policy.tf32x3_attention ? "tf32x3" : "ieee");
  t.turns_on("--bf16", &f.bf16, "Same as --precision bf16");
  t.turns_on("--fp16", &f.fp16, "Same as --precision fp16, with loss scaling");
  t.turns_on("--tf32", &f.tf32, "Same as --precision tf32");
  t.turns_on("--fp64", &f.fp64, "Same as --precision fp64");
  add_fp8_settings(t, f);
  add_loss_scale_settings(t, f.config);
}

}  // namespace

void add_training_settings(SettingTable* table, Flags* flags) {
  add_length_settings(*table, *flags);
  add_optimizer_settings(*table, *flags);
  add_precision_settings(*table, *flags);
}

}  // namespace tally::train
