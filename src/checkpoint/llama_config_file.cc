#include "src/checkpoint/llama_config_file.h"

namespace tally::train {
namespace {

using Json = ConfigJson;

// Throws unless it leaves the angles as they are: {"rope_type": "default"}, in old files "type".
void check_scaling(const ConfigReader& in, const char* key) {
  if (!in.has(key)) return;
  const Json& scaling = in.json()[key];
  const Json type = !scaling.is_object()
                        ? Json()
                        : scaling.value("rope_type", scaling.value("type", Json("default")));
  if (type != "default")
    throw in.bad(
        fmt::format("has \"{}\": {}, and rotary positions are not scaled here: only models "
                    "without it are supported",
                    key, scaling.dump()));
}

// transformers 5 writes it into rope_parameters.
double rotary_base(const ConfigReader& in) {
  const auto base = in.positive("rope_theta", 10000);
  if (in.has("rope_theta") || !in.has("rope_parameters")) return base;
  const Json value = in.json()["rope_parameters"].value("rope_theta", Json(base));
  if (!value.is_number() || !(value.get<double>() > 0))
    throw in.bad(fmt::format("has the rope_theta {}, which is not positive", value.dump()));
  return value.get<double>();
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
  if (json.contains("rope_parameters")) {
    json["rope_parameters"]["rope_theta"] = c.rotary_base;
  } else {
    json["rope_theta"] = c.rotary_base;
  }
}

ModelConfig read_llama_config(const ConfigReader& in, const ModelConfig& defaults) {
  const auto activation = in.get<std::string>("hidden_act", "silu");
  if (activation != "silu" && activation != "swish")
    throw in.bad(fmt::format("has the activation \"{}\", and only silu is supported", activation));
  in.refuse("attention_bias", true);
  in.refuse("mlp_bias", true);
  check_scaling(in, "rope_scaling");
  check_scaling(in, "rope_parameters");
  if (in.get("partial_rotary_factor", 1.0) != 1)
    throw in.bad("has a partial_rotary_factor, and Llama's heads rotate as a whole here");
  ModelConfig c = defaults;
  c.kind = "llama";
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
