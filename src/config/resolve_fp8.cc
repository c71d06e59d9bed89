// --fp8-format and what goes with it.
#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

void resolve_recipe(const Flags& f, Config* c) {
  if (!f.fp8_recipe) {
    c->notices.push_back(
        "--fp8-format: each matrix is scaled by its own largest magnitude (--fp8-recipe "
        "tensorwise); "
        "Megatron-LM's default is delayed");
    return;
  }
  const Fp8Recipe* recipe = find_fp8_recipe(lower(*f.fp8_recipe));
  if (!recipe)
    fail("--fp8-recipe", "'{}' is not computed here: take tensorwise, rowwise or blockwise",
         *f.fp8_recipe);
  c->fp8.recipe = *recipe;
  if (c->fp8.format == Fp8Config::Format::hybrid && !recipe->e5m2_gradients)
    fail("--fp8-recipe",
         "{} has gradients in E4M3, as torchao has it, and hybrid takes E5M2: add --fp8-format "
         "e4m3",
         recipe->name);
}

// Layers at both ends that stay in bf16: one each with --first-last-layers-bf16, unless their
// numbers are given.
void resolve_ends(const Flags& f, Config* c) {
  for (const auto& [flag, count] :
       {std::pair{"--num-layers-at-start-in-bf16", f.bf16_layers_at_start},
        std::pair{"--num-layers-at-end-in-bf16", f.bf16_layers_at_end}})
    if (count && !f.first_last_bf16) fail(flag, "goes with --first-last-layers-bf16");
  if (!f.first_last_bf16) return;
  c->fp8.layers_at_start = f.bf16_layers_at_start.value_or(1);
  c->fp8.layers_at_end = f.bf16_layers_at_end.value_or(1);
  if (c->fp8.layers_at_start + c->fp8.layers_at_end >= c->model.layers)
    fail("--first-last-layers-bf16", "{} and {} of {} layers in bf16 leave none in FP8",
         c->fp8.layers_at_start, c->fp8.layers_at_end, c->model.layers);
}

}  // namespace

std::string fp8_refusal(const Config& c, const std::string& gpu, int capability) {
  const Fp8Recipe& recipe = c.fp8.recipe;
  if (!c.fp8.on() || fp8_serves(recipe, capability)) return "";
  const std::string here =
      fmt::format("{} (compute capability {}.{})", gpu, capability / 10, capability % 10);
  if (capability < fp8_capability)
    return fmt::format("--fp8-format: {} has no FP8, which came with 8.9: leave it out", here);
  return fmt::format("--fp8-recipe: {} does not compute {}, which only {}.{} does: take tensorwise",
                     here, recipe.name, recipe.only_capability / 10, recipe.only_capability % 10);
}

void check_fp8_sizes(const Config& c) {
  if (!c.fp8.on()) return;
  constexpr int64_t multiple = Fp8Config::multiple;
  const ModelConfig& m = c.model;
  const int64_t shards = c.tensor_parallel;
  const auto check = [&](const char* flag, const char* what, int64_t size) {
    if (size % multiple != 0)
      fail(flag, "with --fp8-format {} ({}) must be a multiple of {}", what, size, multiple);
  };
  check("--hidden-size", "it", m.hidden);
  check("--ffn-hidden-size", "each process's part of it", m.ffn / shards);
  check("--num-attention-heads", "the width of each process's heads", m.attention_width() / shards);
  check("--num-query-groups", "the width of each process's keys and values", m.kv_width() / shards);
  if (!c.find_batch)
    check("--micro-batch-size", "the number of tokens of a micro batch",
          c.micro_batch * c.sequence);
  if (m.language_model()) return;
  check("--seq-length", "it", c.sequence);
  if (!c.data.pad)
    fail("--fp8-format",
         "an encoder's micro batches of real tokens alone have any number of tokens, and FP8 takes "
         "multiples of 16: add --pad");
}

void resolve_fp8(const Flags& f, Config* c) {
  if (!f.fp8_format) {
    if (const char* flag =
            f.first_given({"--fp8-recipe", "--first-last-layers-bf16",
                           "--num-layers-at-start-in-bf16", "--num-layers-at-end-in-bf16"}))
      fail(flag, "goes with --fp8-format");
    return;
  }
  if (c->precision != Precision::bf16)
    fail("--fp8-format", "goes with --bf16, which is what is not in FP8; this run is {}",
         precision_name(c->precision));
  if (c->reference) fail("--fp8-format", "the model of --reference has no FP8");
  c->fp8.format = *f.fp8_format;
  resolve_recipe(f, c);
  resolve_ends(f, c);
  check_fp8_sizes(*c);
}

}  // namespace tally::train
