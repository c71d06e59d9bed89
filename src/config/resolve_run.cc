// How a Config runs: precision, processes, device, recomputation.
#include <algorithm>
#include <array>
#include <sstream>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

void check_micro_batch(const Config& c) {
  const double tokens = static_cast<double>(c.micro_batch) * static_cast<double>(c.sequence);
  const double layers = static_cast<double>(c.model.layers) * static_cast<double>(c.model.hidden);
  if (tokens * layers > 1e17)
    fail("--micro-batch-size", "{} samples of {} tokens at a time fit no machine", c.micro_batch,
         c.sequence);
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
  if (f.precision) {
    const std::string name = lower(*f.precision);
    const std::array<std::pair<const char*, Precision>, 11> names{{{"fp32", Precision::f32},
                                                                   {"float32", Precision::f32},
                                                                   {"tf32", Precision::tf32},
                                                                   {"tf32x3", Precision::tf32x3},
                                                                   {"bf16", Precision::bf16},
                                                                   {"bfloat16", Precision::bf16},
                                                                   {"fp16", Precision::f16},
                                                                   {"float16", Precision::f16},
                                                                   {"fp64", Precision::f64},
                                                                   {"float64", Precision::f64},
                                                                   {"f32", Precision::f32}}};
    const auto* found = std::find_if(names.begin(), names.end(),
                                     [&](const auto& entry) { return name == entry.first; });
    if (found == names.end())
      fail("--precision", "'{}' is not known: fp32, tf32x3, tf32, bf16, fp16, fp64", *f.precision);
    if (given.empty() || given.front().precision != found->second)
      given.push_back({"--precision", true, found->second});
  }
  if (given.size() > 1)
    fail(given[0].flag, "{} and {} cannot both be given", given[0].flag, given[1].flag);
  c->precision = given.empty() ? Precision::f32 : given.front().precision;

  if (f.fp32_attention) {
    const std::string name = lower(*f.fp32_attention);
    if (name != "ieee" && name != "tf32x3")
      fail("--fp32-attention", "'{}' is not known: ieee, tf32x3", *f.fp32_attention);
    if (c->precision != Precision::f32)
      fail("--fp32-attention", "goes with --precision fp32; this run is {}",
           precision_name(c->precision));
    c->tf32x3_attention = name == "tf32x3";
  }
  if (f.loss_scale && c->precision != Precision::f16)
    fail("--loss-scale", "only --fp16 scales its loss; this run is {}",
         precision_name(c->precision));
  if (f.initial_loss_scale < f.min_loss_scale)
    fail("--initial-loss-scale", "{} is less than --min-loss-scale {}", f.initial_loss_scale,
         f.min_loss_scale);
  c->loss_scale = f.loss_scale.value_or(0);
  c->initial_loss_scale = f.initial_loss_scale;
  c->min_loss_scale = f.min_loss_scale;
  c->loss_scale_window = f.loss_scale_window;
  c->hysteresis = f.hysteresis;
}

namespace {

void resolve_backend(const Flags& f, Config* c) {
  const std::string name = lower(f.launch.backend);
  const bool known =
      name.empty() || name == "nccl" || name == "mpi" || name == "sockets" || name == "gloo";
  if (!known)
    fail("--distributed-backend", "'{}' is not known: nccl, mpi, sockets", f.launch.backend);
  c->distributed_backend = name == "gloo" ? "sockets" : name;
}

void resolve_sharding(const Flags& f, Config* c) {
  const std::string name = lower(f.sharding_strategy);
  if (name == "optim_grads_params")
    fail("--data-parallel-sharding-strategy",
         "optim_grads_params: this version splits no weights: take optim_grads");
  if (!name.empty() && name != "no_shard" && name != "optim" && name != "optim_grads")
    fail("--data-parallel-sharding-strategy", "'{}' is not known: no_shard, optim, optim_grads",
         f.sharding_strategy);
  const bool gradients = name == "optim_grads";
  const bool state = f.distributed_optimizer || name == "optim" || gradients;
  if (gradients && f.reference)
    fail("--data-parallel-sharding-strategy",
         "optim_grads: the model of --reference keeps all gradients: take optim");
  c->distributed_optimizer = state && c->data_parallel > 1;
  c->shard_gradients = gradients && c->data_parallel > 1;
  if (state && c->data_parallel == 1)
    c->notices.push_back(
        fmt::format("{} has no effect at data parallel size 1",
                    name.empty() || name == "no_shard"
                        ? "--use-distributed-optimizer"
                        : fmt::format("--data-parallel-sharding-strategy {}", name)));
}

}  // namespace

void resolve_parallel(const Flags& f, int world_size, Config* c) {
  for (const auto& [flag, size] : {std::pair{"--context-parallel-size", f.context_parallel},
                                   std::pair{"--expert-model-parallel-size", f.expert_parallel}})
    if (size != 1)
      fail(flag, "{}: context and experts are not divided among processes: take 1", size);
  c->world_size = world_size;
  c->tensor_parallel = f.tensor_parallel;
  c->pipeline_parallel = f.pipeline_parallel;
  c->sequence_parallel = f.sequence_parallel && f.tensor_parallel > 1;
  c->virtual_pipeline_layers = f.virtual_pipeline_layers.value_or(0);
  c->data_parallel = std::max(1, world_size / (f.tensor_parallel * f.pipeline_parallel));
  c->micro_batch = f.micro_batch.value_or(1);
  check_micro_batch(*c);
  c->global_batch = f.global_batch.value_or(c->micro_batch * c->data_parallel);
  check_parallel_layout(*c);
  resolve_backend(f, c);
  c->network_interface = f.launch.interface;
  c->gradient_bucket = f.gradient_bucket;
  c->peer_memory = !f.no_peer_memory;
  c->weight_check_interval = f.weight_check_interval.value_or(0);
  if (f.sequence_parallel && !c->sequence_parallel)
    c->notices.emplace_back("--sequence-parallel has no effect at tensor parallel size 1");
  resolve_sharding(f, c);
}

namespace {

void resolve_fusions(const Flags& f, Config* c) {
  Fusions& u = c->fusions;
  if (f.no_gelu_fusion) {
    u.gelu = false;
    c->notices.emplace_back(
        "--no-bias-gelu-fusion: GELU runs as a kernel of its own, as with --no-fusion gelu; "
        "GPT's stays the tanh approximation, where Megatron-LM computes erf without its fusion");
  }
  if (!f.no_fusion) return;
  std::istringstream names(*f.no_fusion);
  for (std::string name; std::getline(names, name, ',');) {
    bool found = false;
    for (const auto& [fusion, on] : fusion_names) {
      if (name != fusion && name != "all") continue;
      c->fusions.*on = false;
      found = true;
    }
    if (!found)
      fail("--no-fusion",
           "'{}' is not known: residual, bias-sums, qkv-bias, overwrite, gelu, gelu-derivative, "
           "bias, overlap, deferred-update, float64, attention, head, all",
           name);
  }
}

}  // namespace

void resolve_device(const Flags& f, Config* c) {
  c->device = lower(f.device);
  bool known = c->device == "auto" || c->device == "cpu" || c->device == "cuda";
  if (c->device.rfind("cuda:", 0) == 0) {
    const std::string index = c->device.substr(5);
    known = !index.empty() && index.size() < 4 &&
            std::all_of(index.begin(), index.end(), [](char ch) { return ch >= '0' && ch <= '9'; });
  }
  if (!known) fail("--device", "'{}' is not known: auto, cpu, cuda, cuda:N", f.device);
  if (c->device == "cpu" && c->precision == Precision::tf32)
    fail("--tf32", "a CPU has no TF32: use --precision fp32, or a GPU");
  if (c->device == "cpu" && c->precision == Precision::tf32x3)
    fail("--precision", "a CPU has no TF32: use --precision fp32, or a GPU");
  if (c->device == "cpu" && c->tf32x3_attention)
    fail("--fp32-attention", "a CPU has no TF32: leave it out, or use a GPU");
  if (c->tf32x3_attention && c->model.head_dim() > 128)
    fail("--fp32-attention", "tf32x3 serves heads of up to 128; these have {}: leave it out",
         c->model.head_dim());
  c->reference = f.reference;
  c->cuda_graph = !f.no_cuda_graph;
  c->deterministic = f.deterministic;
  resolve_fusions(f, c);
}

void resolve_recompute(const Flags& f, Config* c) {
  if (f.recompute_activations) c->recompute = Recompute::selective;
  if (!f.recompute_granularity) return;
  if (*f.recompute_granularity == "selective") {
    c->recompute = Recompute::selective;
  } else if (*f.recompute_granularity == "full") {
    c->recompute = Recompute::full;
  } else {
    fail("--recompute-granularity", "'{}' is not known: selective, full", *f.recompute_granularity);
  }
}

}  // namespace tally::train
