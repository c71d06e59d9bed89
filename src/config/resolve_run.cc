// The settings of a run: precision, processes, device, recomputation.
#include <algorithm>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

void check_micro_batch(const Config& c) {
  const double tokens = static_cast<double>(c.micro_batch) * static_cast<double>(c.sequence);
  const double layers = static_cast<double>(c.model.layers) * static_cast<double>(c.model.hidden);
  if (tokens * layers > 1e17)
    fail("--micro-batch-size", "{} samples of {} tokens at a time are too many for any machine",
         c.micro_batch, c.sequence);
}

}  // namespace

void resolve_precision(const Flags& f, Config* c) {
  struct Choice {
    const char* flag;
    bool given;
    Precision precision;
  };
  std::vector<Choice> given;
  for (const Choice& choice :
       {Choice{"--fp16", f.fp16, Precision::f16}, Choice{"--bf16", f.bf16, Precision::bf16},
        Choice{"--tf32", f.tf32, Precision::tf32}, Choice{"--fp64", f.fp64, Precision::f64}})
    if (choice.given) given.push_back(choice);
  if (f.precision && (given.empty() || given.front().precision != *f.precision))
    given.push_back({"--precision", true, *f.precision});
  if (given.size() > 1)
    fail(given[0].flag, "{} and {} cannot both be given", given[0].flag, given[1].flag);
  c->precision = given.empty() ? Precision::f32 : given.front().precision;

  c->policy.matmul_mode = c->precision == Precision::tf32     ? MatmulMode::tf32
                          : c->precision == Precision::tf32x3 ? MatmulMode::tf32x3
                                                              : MatmulMode::ieee;
  if (f.tf32x3_attention && c->precision != Precision::f32)
    fail("--fp32-attention", "goes with --precision fp32; this run is {}",
         precision_name(c->precision));
  c->policy.tf32x3_attention = f.tf32x3_attention.value_or(false);
  if (c->loss_scale > 0 && c->precision != Precision::f16)
    fail("--loss-scale", "only --fp16 scales its loss; this run is {}",
         precision_name(c->precision));
  if (c->initial_loss_scale < c->min_loss_scale)
    fail("--initial-loss-scale", "{} is less than --min-loss-scale {}", c->initial_loss_scale,
         c->min_loss_scale);
}

namespace {

void resolve_sharding(const Flags& f, Config* c) {
  const ShardingStrategy strategy = f.sharding.value_or(ShardingStrategy::none);
  if (strategy == ShardingStrategy::weights)
    fail("--data-parallel-sharding-strategy",
         "optim_grads_params: this version divides no weights: take optim_grads");
  const bool gradients = strategy == ShardingStrategy::gradients;
  const bool state = c->distributed_optimizer || strategy != ShardingStrategy::none;
  if (gradients && c->reference)
    fail("--data-parallel-sharding-strategy",
         "optim_grads: the model of --reference keeps all gradients: take optim");
  c->distributed_optimizer = state && c->data_parallel > 1;
  c->shard_gradients = gradients && c->data_parallel > 1;
  if (state && c->data_parallel == 1)
    c->notices.push_back(fmt::format("{} has no effect at data parallel size 1",
                                     strategy == ShardingStrategy::none
                                         ? "--use-distributed-optimizer"
                                         : fmt::format("--data-parallel-sharding-strategy {}",
                                                       gradients ? "optim_grads" : "optim")));
}

}  // namespace

void resolve_parallel(const Flags& f, int world_size, Config* c) {
  for (const auto& [flag, size] : {std::pair{"--context-parallel-size", f.context_parallel},
                                   std::pair{"--expert-model-parallel-size", f.expert_parallel}})
    if (size != 1)
      fail(flag, "{}: context and experts are not divided among processes: take 1", size);
  c->world_size = world_size;
  c->sequence_parallel = c->sequence_parallel && c->tensor_parallel > 1;
  c->data_parallel = std::max(1, world_size / (c->tensor_parallel * c->pipeline_parallel));
  c->micro_batch = f.micro_batch.value_or(1);
  check_micro_batch(*c);
  c->global_batch = f.global_batch.value_or(c->micro_batch * c->data_parallel);
  check_parallel_layout(*c);
  c->distributed_backend = f.launch.backend;
  c->network_interface = f.launch.interface;
  if (f.config.sequence_parallel && !c->sequence_parallel)
    c->notices.emplace_back("--sequence-parallel has no effect at tensor parallel size 1");
  resolve_sharding(f, c);
}

namespace {

void resolve_fusions(const Flags& f, Config* c) {
  if (!f.no_gelu_fusion) return;
  c->policy.fusions.gelu = false;
  c->notices.emplace_back(
      "--no-bias-gelu-fusion: GELU runs as a kernel of its own, as with --no-fusion gelu; "
      "GPT's stays the tanh approximation, where Megatron-LM computes erf without its fusion");
}

}  // namespace

void resolve_device(const Flags& f, Config* c) {
  c->device = lower(c->device);
  if (c->device == "cpu" && c->precision == Precision::tf32)
    fail("--tf32", "a CPU has no TF32: use --precision fp32, or a GPU");
  if (c->device == "cpu" && c->precision == Precision::tf32x3)
    fail("--precision", "a CPU has no TF32: use --precision fp32, or a GPU");
  if (c->device == "cpu" && c->policy.tf32x3_attention)
    fail("--fp32-attention", "a CPU has no TF32: leave it out, or use a GPU");
  if (c->policy.tf32x3_attention && c->model.head_dim() > 128)
    fail("--fp32-attention", "tf32x3 serves heads of up to 128; these have {}: leave it out",
         c->model.head_dim());
  resolve_fusions(f, c);
}

void resolve_recompute(const Flags& f, Config* c) {
  c->recompute = f.recompute_granularity.value_or(f.recompute_activations ? Recompute::selective
                                                                          : Recompute::none);
}

}  // namespace tally::train
