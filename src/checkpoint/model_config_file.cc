#include "src/checkpoint/model_config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/checkpoint/config_reader.h"
#include "src/checkpoint/encoder_config.h"
#include "src/checkpoint/llama_config_file.h"
#include "src/data/text/json_fault.h"
#include "src/data/text/mapped_file.h"

namespace tally::train {
namespace {

using Json = ConfigJson;

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "float64";
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      return "float32";
  }
}

ConfigReader open_config(const std::string& path) {
  const std::string name = std::filesystem::is_directory(path)
                               ? (std::filesystem::path(path) / "config.json").string()
                               : path;
  const MappedFile file(name);
  try {
    Json json = Json::parse(file.data(), file.data() + file.size());
    if (json.is_object()) return {name, std::move(json)};
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("'{}' is not valid JSON: {}", name, json_fault(error)));
  }
  throw std::runtime_error(
      fmt::format("'{}' is not a model's configuration (a JSON object)", name));
}

// Fields that the loaded file may say in other words or with more besides stay as they are.
template <typename Value>
void keep(Json* json, const char* key, const Value& value) {
  if (!json->contains(key)) (*json)[key] = value;
}

void write_gpt_config(const ModelConfig& config, bool loaded, Json* out) {
  Json& json = *out;
  const bool gpt2 = config.positions == Positions::learned;
  json["architectures"] = {gpt2 ? "GPT2LMHeadModel" : "TallyGptLMHeadModel"};
  json["model_type"] = gpt2 ? "gpt2" : "tally_gpt";
  keep(&json, "activation_function", entry_of(config.block.mlp).name);
  json["attn_pdrop"] = config.attention_dropout;
  json["embd_pdrop"] = config.hidden_dropout;
  json["resid_pdrop"] = config.hidden_dropout;
  json["initializer_range"] = config.init_std;
  json["layer_norm_epsilon"] = config.layernorm_epsilon;
  json["n_embd"] = config.hidden;
  json["n_head"] = config.heads;
  if (config.ffn != 4 * config.hidden || !json.contains("n_inner") || !json["n_inner"].is_null())
    json["n_inner"] = config.ffn;
  json["n_layer"] = config.layers;
  json["n_positions"] = config.max_positions;
  if (!loaded || json.contains("n_ctx")) json["n_ctx"] = config.max_positions;
  keep(&json, "scale_attn_weights", true);
  if (gpt2) return;
  json["rotary_base"] = config.rotary_base;
  json["rotary_fraction"] = config.rotary_fraction;
}

ModelConfig read_gpt_config(const ConfigReader& in, const ModelConfig& defaults, bool rotary,
                            bool dropout) {
  in.refuse("scale_attn_weights", false);
  in.refuse("scale_attn_by_inverse_layer_idx", true);
  in.refuse("add_cross_attention", true);
  ModelConfig config = defaults;
  config.set_kind("gpt");
  config.block.mlp = in.activation("activation_function", config.block.mlp);
  config.task = Task::language_model;
  config.layers = in.size("n_layer", "num_hidden_layers");
  config.hidden = in.size("n_embd", "hidden_size");
  config.heads = in.size("n_head", "num_attention_heads");
  config.ffn = in.has("n_inner") ? in.size("n_inner") : 4 * config.hidden;
  config.max_positions = in.size("n_positions", "max_position_embeddings");
  config.vocabulary = in.size("vocab_size");
  if (config.hidden % config.heads != 0)
    throw in.bad(
        fmt::format("has n_embd {} that {} heads do not divide", config.hidden, config.heads));
  config.positions = rotary ? Positions::rotary : Positions::learned;
  config.rotary_base = in.get("rotary_base", defaults.rotary_base);
  config.rotary_fraction = in.get("rotary_fraction", defaults.rotary_fraction);
  config.layernorm_epsilon = in.positive("layer_norm_epsilon", 1e-5);
  config.init_std = in.get("initializer_range", 0.02);
  config.attention_dropout = in.probability("attn_pdrop");
  config.hidden_dropout = in.probability("resid_pdrop");
  if (dropout && in.probability("embd_pdrop") != config.hidden_dropout)
    throw in.bad(
        "has different embd_pdrop and resid_pdrop, and there is one hidden dropout here: give "
        "--hidden-dropout");
  config.tied_embeddings = in.get("tie_word_embeddings", true);
  return config;
}

}  // namespace

std::string model_config_json(const ModelConfig& config, DType weights, const SideFiles& side) {
  Json json = side.config.empty() ? Json::object() : Json::parse(side.config);
  if (!config.language_model()) {
    write_encoder_config(config, torch_name(weights), side.classes, &json);
    return json.dump(2) + "\n";
  }
  if (config.kind() == "llama") {
    write_llama_config(config, &json);
  } else {
    write_gpt_config(config, !side.config.empty(), &json);
  }
  // GPT-2's vocabulary is often padded, and then its last id is not a token.
  const int64_t end =
      side.end_of_text >= 0 ? side.end_of_text : std::min<int64_t>(config.vocabulary - 1, 50256);
  keep(&json, "bos_token_id", end);
  keep(&json, "eos_token_id", end);
  json["tie_word_embeddings"] = config.tied_embeddings;
  json[json.contains("dtype") ? "dtype" : "torch_dtype"] = torch_name(weights);
  json["vocab_size"] = config.vocabulary;
  return json.dump(2) + "\n";
}

std::vector<std::string> read_class_names(const std::string& path) {
  return read_class_names(open_config(path));
}

ModelConfig read_model_config(const std::string& path, const ModelConfig& defaults,
                              int64_t vocabulary_multiple, bool dropout) {
  const ConfigReader in = open_config(path);
  const auto type = in.get<std::string>("model_type", "");
  if (type.empty()) throw in.bad("has no \"model_type\"");
  if (type == "bert" || type == "distilbert")
    return read_encoder_config(in, type, defaults, vocabulary_multiple);
  const bool llama = is_llama_type(type);
  if (type != "gpt2" && type != "tally_gpt" && !llama)
    throw in.bad(fmt::format(
        "describes a model of type \"{}\", and only gpt2, llama, mistral, qwen2, qwen3, bert "
        "and distilbert "
        "are supported",
        type));
  ModelConfig config = llama ? read_llama_config(in, defaults)
                             : read_gpt_config(in, defaults, type == "tally_gpt", dropout);
  config.padded_vocabulary = pad_vocabulary(config.vocabulary, vocabulary_multiple);
  return config;
}

}  // namespace tally::train
