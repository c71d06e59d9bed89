// The kind of a model's blocks: GPT-2's, or Llama's, whose parts go together.
#include <array>
#include <utility>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

constexpr const char* two_kinds =
    "the blocks are GPT-2's, or Llama's, which have --swiglu, --normalization RMSNorm, "
    "--disable-bias-linear and --position-embedding-type rope";

bool asks_for_rms(const Flags& f) {
  return f.normalization == NormKind::rms;
}

bool asks_for_rope(const Flags& f) {
  return f.rotary || f.positions == Positions::rotary;
}

}  // namespace

const char* flag_of_llama(const Flags& f) {
  if (asks_for_rms(f)) return "--normalization";
  return f.first_given({"--swiglu", "--disable-bias-linear", "--add-qkv-bias", "--qk-layernorm",
                        "--use-rope-scaling", "--group-query-attention", "--num-query-groups",
                        "--kv-channels"});
}

RotaryScaling resolve_rotary_scaling(const Flags& f) {
  if (!f.rope_scaling) {
    if (const char* flag =
            f.first_given({"--rope-scaling-factor", "--rope-low-freq-factor",
                           "--rope-high-freq-factor", "--rope-original-max-position-embeddings"}))
      fail(flag, "goes with --use-rope-scaling");
    return {};
  }
  const RotaryScaling scaling{.factor = f.rope_factor.value_or(8),
                              .low = f.rope_low.value_or(1),
                              .high = f.rope_high.value_or(4),
                              .original_positions = f.rope_positions.value_or(8192)};
  if (scaling.high <= scaling.low)
    fail("--rope-high-freq-factor", "{} is not above --rope-low-freq-factor {}", scaling.high,
         scaling.low);
  return scaling;
}

std::string resolve_kind(const Flags& f, bool llama_preset) {
  const char* flag = flag_of_llama(f);
  if (llama_preset) {
    if (f.normalization && !asks_for_rms(f))
      fail("--normalization", "LayerNorm contradicts --model {}: {}", *f.model, two_kinds);
    if (f.positions && !asks_for_rope(f))
      fail("--position-embedding-type", "learned_absolute contradicts --model {}: {}", *f.model,
           two_kinds);
    return "llama";
  }
  if (!flag) return "gpt";
  for (const auto& [part, given] :
       {std::pair{"--swiglu", f.swiglu}, std::pair{"--normalization RMSNorm", asks_for_rms(f)},
        std::pair{"--disable-bias-linear", f.disable_bias_linear},
        std::pair{"--position-embedding-type rope", asks_for_rope(f)}})
    if (!given) fail(flag, "needs {}: {}", part, two_kinds);
  return "llama";
}

void agree_with_kind(const Flags& f, const std::string& folder, const ModelConfig& m) {
  const char* flag = flag_of_llama(f);
  const RotaryScaling scaling = resolve_rotary_scaling(f);
  if (flag && m.kind() != "llama")
    fail(flag, "contradicts {}/config.json, which describes a {}: leave it out", folder,
         m.kind() == "gpt" ? "GPT-2" : m.kind());
  if (m.kind() == "llama" && f.normalization && !asks_for_rms(f))
    fail("--normalization", "LayerNorm contradicts {}/config.json, which describes a Llama",
         folder);
  if (f.qk_norm && !m.block.qk_norm)
    fail("--qk-layernorm", "contradicts {}/config.json, whose heads have no norms: leave it out",
         folder);
  if (f.qkv_bias && !m.block.qkv_bias)
    fail("--add-qkv-bias", "contradicts {}/config.json, which has none: leave it out", folder);
  if (f.rope_scaling && scaling != m.rotary_scaling)
    fail("--use-rope-scaling", "contradicts {}/config.json, which says {}: leave it out", folder,
         m.rotary_scaling.on() ? "other numbers" : "that rotary positions are not scaled");
}

// Megatron-LM, megatron/training/arguments.py: two thirds of 4 h, which leaves the number of
// parameters about the same.
int64_t default_ffn(const ModelConfig& m) {
  return m.block.gated() ? 4 * m.hidden * 2 / 3 / 64 * 64 : 4 * m.hidden;
}

void resolve_heads(const Flags& f, int64_t preset, ModelConfig* m) {
  if (f.query_groups && !f.grouped_queries && preset == 0)
    fail("--num-query-groups", "goes with --group-query-attention");
  m->query_groups = f.query_groups.value_or(f.grouped_queries && preset == 0 ? 1 : preset);
  m->kv_channels = f.kv_channels.value_or(0);
  m->block.qk_norm = f.qk_norm;
  m->block.qkv_bias = f.qkv_bias;
  if (f.qk_norm && f.qkv_bias)
    fail("--add-qkv-bias", "contradicts --qk-layernorm: no model has both");
  m->rotary_scaling = resolve_rotary_scaling(f);
  if (m->heads % m->kv_heads() != 0)
    fail("--num-query-groups", "{} does not divide --num-attention-heads {}", m->kv_heads(),
         m->heads);
  if (m->kind() == "llama" && m->rotary_fraction != 1)
    fail("--rotary-percent", "{}: Llama's heads rotate as a whole: leave it out",
         m->rotary_fraction);
}

}  // namespace tally::train
