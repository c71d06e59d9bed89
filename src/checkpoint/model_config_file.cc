#include "src/checkpoint/model_config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/json_fault.h"
#include "src/data/mapped_file.h"

namespace tally::train {
namespace {

using Json = nlohmann::ordered_json;

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

// A config.json while it is read.
class Reader {
 public:
  Reader(std::string path, Json json) : path_(std::move(path)), json_(std::move(json)) {}
  std::runtime_error bad(const std::string& why) const {
    return std::runtime_error(fmt::format("'{}' {}", path_, why));
  }
  bool has(const char* key) const { return json_.contains(key) && !json_[key].is_null(); }
  template <typename T>
  T get(const char* key, const T& missing) const {
    if (!has(key)) return missing;
    try {
      return json_[key].template get<T>();
    } catch (const Json::exception&) {
      throw bad(fmt::format("has {} for \"{}\", which is not of the expected kind",
                            json_[key].dump(), key));
    }
  }
  double probability(const char* key) const {
    const auto value = get<double>(key, 0.1);
    if (!(value >= 0 && value < 1))
      throw bad(fmt::format("has the {} {}, which is not in [0, 1)", key, value));
    return value;
  }
  int64_t size(const char* key) const {
    if (has(key) && !json_[key].is_number_integer())
      throw bad(
          fmt::format("has {} for \"{}\", which is not a whole number", json_[key].dump(), key));
    const auto value = get<int64_t>(key, 0);
    if (value < 1) throw bad(fmt::format("gives no positive \"{}\"", key));
    return value;
  }
  // Throws for a model that is computed differently from ours.
  void refuse(const char* key, bool bad_value) const {
    if (get<bool>(key, !bad_value) == bad_value) {
      throw bad(fmt::format("has \"{}\": {}, which is not supported", key, bad_value));
    }
  }

 private:
  std::string path_;
  Json json_;
};

Reader open_config(const std::string& path) {
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

}  // namespace

std::string model_config_json(const ModelConfig& config, DType weights, const SideFiles& side) {
  const bool gpt2 = config.positions == Positions::learned;
  Json json = side.config.empty() ? Json::object() : Json::parse(side.config);
  // Keeps those fields of the loaded file that say the same in other words or that we do not know.
  const auto keep = [&](const char* key, const Json& value) {
    if (!json.contains(key)) json[key] = value;
  };
  json["architectures"] = {gpt2 ? "GPT2LMHeadModel" : "TallyGptLMHeadModel"};
  json["model_type"] = gpt2 ? "gpt2" : "tally_gpt";
  keep("activation_function", "gelu_new");
  json["attn_pdrop"] = config.attention_dropout;
  json["embd_pdrop"] = config.hidden_dropout;
  json["resid_pdrop"] = config.hidden_dropout;
  // GPT-2's vocabulary is often padded, and then its last id is not a token.
  const int64_t end =
      side.end_of_text >= 0 ? side.end_of_text : std::min<int64_t>(config.vocabulary - 1, 50256);
  keep("bos_token_id", end);
  keep("eos_token_id", end);
  json["initializer_range"] = config.init_std;
  json["layer_norm_epsilon"] = config.layernorm_epsilon;
  json["n_embd"] = config.hidden;
  json["n_head"] = config.heads;
  if (config.ffn != 4 * config.hidden || !json.contains("n_inner") || !json["n_inner"].is_null())
    json["n_inner"] = config.ffn;
  json["n_layer"] = config.layers;
  json["n_positions"] = config.max_positions;
  if (side.config.empty() || json.contains("n_ctx")) json["n_ctx"] = config.max_positions;
  keep("scale_attn_weights", true);
  json["tie_word_embeddings"] = config.tied_embeddings;
  json[json.contains("dtype") ? "dtype" : "torch_dtype"] = torch_name(weights);
  json["vocab_size"] = config.vocabulary;
  if (!gpt2) {
    json["rotary_base"] = config.rotary_base;
    json["rotary_fraction"] = config.rotary_fraction;
  }
  return json.dump(2) + "\n";
}

ModelConfig read_model_config(const std::string& path, const ModelConfig& defaults,
                              int64_t vocabulary_multiple, bool dropout) {
  const Reader in = open_config(path);
  const auto type = in.get<std::string>("model_type", "");
  if (type.empty()) throw in.bad("gives no \"model_type\"");
  if (type != "gpt2" && type != "tally_gpt") {
    throw in.bad(fmt::format("describes a model of type \"{}\", and only gpt2 is supported", type));
  }
  const auto activation = in.get<std::string>("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    throw in.bad(
        fmt::format("has the activation \"{}\", and only gelu_new is supported", activation));
  }
  in.refuse("scale_attn_weights", false);
  in.refuse("scale_attn_by_inverse_layer_idx", true);
  in.refuse("add_cross_attention", true);
  ModelConfig config = defaults;
  config.kind = "gpt";
  config.layers = in.size("n_layer");
  config.hidden = in.size("n_embd");
  config.heads = in.size("n_head");
  config.ffn = in.has("n_inner") ? in.size("n_inner") : 4 * config.hidden;
  config.max_positions = in.size("n_positions");
  config.vocabulary = in.size("vocab_size");
  config.padded_vocabulary =
      (config.vocabulary + vocabulary_multiple - 1) / vocabulary_multiple * vocabulary_multiple;
  if (config.hidden % config.heads != 0) {
    throw in.bad(
        fmt::format("has n_embd {} that {} heads do not divide", config.hidden, config.heads));
  }
  config.positions = type == "gpt2" ? Positions::learned : Positions::rotary;
  config.rotary_base = in.get("rotary_base", defaults.rotary_base);
  config.rotary_fraction = in.get("rotary_fraction", defaults.rotary_fraction);
  config.layernorm_epsilon = in.get("layer_norm_epsilon", 1e-5);
  config.init_std = in.get("initializer_range", 0.02);
  if (!(config.layernorm_epsilon > 0)) {
    throw in.bad(fmt::format("has the layer_norm_epsilon {}, which is not positive",
                             config.layernorm_epsilon));
  }
  config.attention_dropout = in.probability("attn_pdrop");
  config.hidden_dropout = in.probability("resid_pdrop");
  if (dropout && in.probability("embd_pdrop") != config.hidden_dropout) {
    throw in.bad(
        "has different embd_pdrop and resid_pdrop, and there is one hidden dropout here: give "
        "--hidden-dropout");
  }
  config.tied_embeddings = in.get("tie_word_embeddings", true);
  return config;
}

}  // namespace tally::train
