#include "src/checkpoint/llama_config_file.h"

namespace tally::train {
namespace {

using Json = ConfigJson;

// The object that has the parameters of rotary positions, as transformers 5 chooses it; null: none.
// The rest of config.json gives what it leaves out.
const char* rotary_place(const Json& json) {
  for (const char* key : {"rope_scaling", "rope_parameters"})
    if (json.contains(key) && !json[key].is_null() && !json[key].empty()) return key;
  return nullptr;
}

// Throws unless the angles are neither scaled nor other ones for some layers.
double rotary_base(const ConfigReader& in) {
  const Json& json = in.json();
  const char* place = rotary_place(json);
  const Json rotary = place ? json[place] : Json::object();
  const auto plain = [&] {
    if (!rotary.is_object()) return false;
    for (const Json& value : rotary)
      if (value.is_object()) return false;  // the parameters of a kind of layer
    return rotary.value("rope_type", rotary.value("type", Json("default"))) == "default";
  };
  if (!plain())
    throw in.bad(
        fmt::format("has \"{}\": {}, and rotary positions are not scaled here: only models "
                    "without it are supported",
                    place, rotary.dump()));
  const bool inside = rotary.contains("partial_rotary_factor");
  const Json part =
      inside ? rotary["partial_rotary_factor"] : Json(in.get("partial_rotary_factor", 1.0));
  if (!part.is_number() || part.get<double>() != 1)
    throw in.bad("has a partial_rotary_factor, and Llama's heads rotate as a whole here");
  if (!rotary.contains("rope_theta")) return in.positive("rope_theta", 10000);
  const Json& base = rotary["rope_theta"];
  if (!base.is_number() || !(base.get<double>() > 0))
    throw in.bad(fmt::format("has the rope_theta {}, which is not positive", base.dump()));
  return base.get<double>();
}

}  // namespace

void write_llama_config(const ModelConfig& c, Json* out) {
  Json& json = *out;
  json["architectures"] = {"LlamaForCausalLM"};
  json["model_type"] = "llama";
  json["hidden_act"] = "silu";
  json["attention_bias"] = false;
  json["mlp_bias"] = false;
  json["attention_dropout"] = c.attention_dropout;
  json["hidden_dropout"] = c.hidden_dropout;  // which transformers' Llama does not have
  json["initializer_range"] = c.init_std;
  json["rms_norm_eps"] = c.layernorm_epsilon;
  json["hidden_size"] = c.hidden;
  json["intermediate_size"] = c.ffn;
  json["num_hidden_layers"] = c.layers;
  json["num_attention_heads"] = c.heads;
  json["num_key_value_heads"] = c.kv_heads();
  json["head_dim"] = c.head_dim();
  json["max_position_embeddings"] = c.max_positions;
  const char* place = rotary_place(json);
  if (place) json[place]["rope_theta"] = c.rotary_base;
  // transformers 4 reads this one alone.
  if (!place || json.contains("rope_theta")) json["rope_theta"] = c.rotary_base;
}

ModelConfig read_llama_config(const ConfigReader& in, const ModelConfig& defaults) {
  const auto activation = in.get<std::string>("hidden_act", "silu");
  if (activation != "silu" && activation != "swish")
    throw in.bad(fmt::format("has the activation \"{}\", and only silu is supported", activation));
  in.refuse("attention_bias", true);
  in.refuse("mlp_bias", true);
  ModelConfig c = defaults;
  c.set_kind("llama");
  c.task = Task::language_model;
  c.layers = in.size("num_hidden_layers");
  c.hidden = in.size("hidden_size");
  c.heads = in.size("num_attention_heads");
  c.query_groups = in.has("num_key_value_heads") ? in.size("num_key_value_heads") : c.heads;
  c.kv_channels = in.has("head_dim") ? in.size("head_dim") : 0;
  c.ffn = in.size("intermediate_size");
  c.max_positions = in.size("max_position_embeddings");
  c.vocabulary = in.size("vocab_size");
  if (c.kv_channels == 0 && c.hidden % c.heads != 0)
    throw in.bad(fmt::format("has hidden_size {} that {} heads do not divide", c.hidden, c.heads));
  if (c.heads % c.kv_heads() != 0)
    throw in.bad(fmt::format("has {} heads, which num_key_value_heads {} does not divide", c.heads,
                             c.kv_heads()));
  c.positions = Positions::rotary;
  c.rotary_base = rotary_base(in);
  c.rotary_fraction = 1;
  c.layernorm_epsilon = in.positive("rms_norm_eps", 1e-6);
  c.init_std = in.get("initializer_range", 0.02);
  c.attention_dropout = in.probability("attention_dropout", 0);
  c.hidden_dropout = in.probability("hidden_dropout", 0);
  c.tied_embeddings = in.get("tie_word_embeddings", false);
  return c;
}

}  // namespace tally::train
