#include "src/checkpoint/llama_config_file.h"

#include <algorithm>
#include <array>

namespace tally::train {
namespace {

using Json = ConfigJson;

// The object that has the parameters of rotary positions, as transformers 5 chooses it; null: none.
// The rest of config.json gives what it leaves out.
const char* rotary_key(const Json& json) {
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (json.contains(key) && !json[key].is_null() && !json[key].empty()) return key;
  return nullptr;
}

RotaryScaling scaling_of(const ConfigReader& in, const char* object, const Json& rotary) {
  const auto number = [&](const char* key) {
    const Json value = rotary.value(key, Json());
    if (!value.is_number() || !(value.get<double>() > 0))
      throw in.bad(fmt::format("has \"{}\" without a positive number \"{}\"", object, key));
    return value.get<double>();
  };
  const RotaryScaling scaling{
      .factor = number("factor"),
      .low = number("low_freq_factor"),
      .high = number("high_freq_factor"),
      .original_positions = static_cast<int64_t>(number("original_max_position_embeddings"))};
  if (scaling.factor < 1)
    throw in.bad(
        fmt::format("has the factor {} in \"{}\", which is below 1", scaling.factor, object));
  if (scaling.high <= scaling.low)
    throw in.bad(
        fmt::format("has a high_freq_factor in \"{}\" that is not above low_freq_factor", object));
  return scaling;
}

// Throws where the angles are scaled in another way than Llama 3.1's, or are other ones for some
// layers.
RotaryAngles rotary_angles(const ConfigReader& in) {
  const Json& json = in.json();
  const char* object = rotary_key(json);
  const Json rotary = object ? json[object] : Json::object();
  const Json type = rotary.is_object()
                        ? rotary.value("rope_type", rotary.value("type", Json("default")))
                        : Json();
  const auto known = [&] {
    for (const Json& value : rotary)
      if (value.is_object()) return false;  // the parameters of a kind of layer
    return type == "default" || type == "llama3";
  };
  if (!known())
    throw in.bad(
        fmt::format("has \"{}\": {}, and rotary positions are scaled here as Llama 3.1's "
                    "(\"llama3\") or not at all",
                    object, rotary.dump()));
  const bool inside = rotary.contains("partial_rotary_factor");
  const Json part =
      inside ? rotary["partial_rotary_factor"] : Json(in.get("partial_rotary_factor", 1.0));
  if (!part.is_number() || part.get<double>() != 1)
    throw in.bad("has a partial_rotary_factor, and Llama's heads rotate as a whole here");
  RotaryAngles angles;
  if (type == "llama3") angles.scaling = scaling_of(in, object, rotary);
  const Json base =
      rotary.contains("rope_theta") ? rotary["rope_theta"] : Json(in.positive("rope_theta", 10000));
  if (!base.is_number() || !(base.get<double>() > 0))
    throw in.bad(fmt::format("has the rope_theta {}, which is not positive", base.dump()));
  angles.base = base.get<double>();
  return angles;
}

// The architectures of Hugging Face that have Llama's blocks, and what transformers takes for what
// their files leave out.
struct Kin {
  const char *type, *architecture;
  bool qkv_bias, qk_norm;
  bool windows;                // are used
  int64_t kv_heads, head_dim;  // 0: as many as of Q; hidden / heads
};
constexpr std::array<Kin, 4> kins{{{"llama", "LlamaForCausalLM", false, false, false, 0, 0},
                                   {"mistral", "MistralForCausalLM", false, false, true, 8, 0},
                                   {"qwen2", "Qwen2ForCausalLM", true, false, false, 32, 0},
                                   {"qwen3", "Qwen3ForCausalLM", false, true, false, 32, 128}}};

// Throws where a layer sees a part of the tokens only, which is not computed here. Where windows
// are used, and nothing says how long they are, transformers has 4,096 tokens.
void refuse_windows(const ConfigReader& in, const Kin& kin) {
  const Json& json = in.json();
  const bool used = in.get("use_sliding_window", kin.windows);
  const bool none = json.contains("sliding_window") && json["sliding_window"].is_null();
  if (used && !none)
    throw in.bad(
        "has windows (sliding_window is not null), and every token sees all those before it here");
  for (const Json& type : json.value("layer_types", Json::array()))
    if (type != "full_attention")
      throw in.bad(fmt::format("has layers of the type {}, and only full_attention is supported",
                               type.dump()));
}

// The one that has such blocks; `type`, where it is one of them.
const Kin& kin_of(const ModelConfig& c, const std::string& type) {
  const auto fits = [&](const Kin& kin) {
    return kin.qkv_bias == c.block.qkv_bias && kin.qk_norm == c.block.qk_norm;
  };
  for (const Kin& kin : kins)
    if (type == kin.type && fits(kin)) return kin;
  return *std::find_if(kins.begin(), kins.end(), fits);
}

}  // namespace

bool is_llama_type(const std::string& type) {
  return std::any_of(kins.begin(), kins.end(), [&](const Kin& kin) { return type == kin.type; });
}

void write_llama_config(const ModelConfig& c, Json* out) {
  Json& json = *out;
  const Kin& kin = kin_of(c, json.value("model_type", ""));
  json["architectures"] = {kin.architecture};
  json["model_type"] = kin.type;
  json["hidden_act"] = entry_of(c.block.mlp).name;
  json["attention_bias"] = false;
  json["mlp_bias"] = false;
  json["attention_dropout"] = c.attention_dropout;
  json["hidden_dropout"] = c.hidden_dropout;  // transformers' Llama has none
  json["initializer_range"] = c.init_std;
  json["rms_norm_eps"] = c.layernorm_epsilon;
  json["hidden_size"] = c.hidden;
  json["intermediate_size"] = c.ffn;
  json["num_hidden_layers"] = c.layers;
  json["num_attention_heads"] = c.heads;
  json["num_key_value_heads"] = c.kv_heads();
  json["head_dim"] = c.head_dim();
  json["max_position_embeddings"] = c.max_positions;
  const char* object = rotary_key(json);
  if (!object && c.rotary_scaling.on()) {
    const RotaryScaling& s = c.rotary_scaling;
    json["rope_scaling"] = {{"rope_type", "llama3"},
                            {"factor", s.factor},
                            {"low_freq_factor", s.low},
                            {"high_freq_factor", s.high},
                            {"original_max_position_embeddings", s.original_positions}};
  }
  if (object) json[object]["rope_theta"] = c.rotary_base;
  // transformers 4 reads this key alone.
  if (!object || json.contains("rope_theta")) json["rope_theta"] = c.rotary_base;
}

ModelConfig read_llama_config(const ConfigReader& in, const ModelConfig& defaults) {
  const auto type = in.get<std::string>("model_type", "");
  const Kin& kin = *std::ranges::find_if(kins, [&](const Kin& k) { return type == k.type; });
  refuse_windows(in, kin);
  in.refuse("attention_bias", true);
  in.refuse("mlp_bias", true);
  ModelConfig c = defaults;
  c.set_kind("llama");
  c.block.mlp = in.activation("hidden_act", c.block.mlp);
  c.block.qkv_bias = kin.qkv_bias;
  c.block.qk_norm = kin.qk_norm;
  c.task = Task::language_model;
  c.layers = in.size("num_hidden_layers");
  c.hidden = in.size("hidden_size");
  c.heads = in.size("num_attention_heads");
  const auto left_out = [&](const char* key) { return !in.json().contains(key); };
  c.query_groups = in.has("num_key_value_heads") ? in.size("num_key_value_heads")
                   : kin.kv_heads > 0 && left_out("num_key_value_heads") ? kin.kv_heads
                                                                         : c.heads;
  c.kv_channels = in.has("head_dim")     ? in.size("head_dim")
                  : left_out("head_dim") ? kin.head_dim
                                         : 0;
  c.ffn = in.size("intermediate_size");
  c.max_positions = in.size("max_position_embeddings");
  c.vocabulary = in.size("vocab_size");
  if (c.kv_channels == 0 && c.hidden % c.heads != 0)
    throw in.bad(fmt::format("has hidden_size {} that {} heads do not divide", c.hidden, c.heads));
  if (c.heads % c.kv_heads() != 0)
    throw in.bad(fmt::format("has {} heads, which num_key_value_heads {} does not divide", c.heads,
                             c.kv_heads()));
  c.positions = Positions::rotary;
  const RotaryAngles angles = rotary_angles(in);
  c.rotary_base = angles.base;
  c.rotary_scaling = angles.scaling;
  c.rotary_fraction = 1;
  c.layernorm_epsilon = in.positive("rms_norm_eps", 1e-6);
  c.init_std = in.get("initializer_range", 0.02);
  c.attention_dropout = in.probability("attention_dropout", 0);
  c.hidden_dropout = in.probability("hidden_dropout", 0);
  c.tied_embeddings = in.get("tie_word_embeddings", false);
  return c;
}

}  // namespace tally::train
