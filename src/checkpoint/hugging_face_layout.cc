#include "src/checkpoint/hugging_face_layout.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "src/checkpoint/model_weights.h"

namespace tally::train {
namespace {

template <typename T>
void transpose_elements(const char* from, int64_t rows, int64_t columns, char* to) {
  constexpr int64_t kBlock = 64;
  const T* in = reinterpret_cast<const T*>(from);
  T* out = reinterpret_cast<T*>(to);
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      for (int64_t r = r0; r < std::min(r0 + kBlock, rows); ++r) {
        for (int64_t c = c0; c < std::min(c0 + kBlock, columns); ++c) {
          out[c * rows + r] = in[r * columns + c];
        }
      }
    }
  }
}

}  // namespace

const char* saved_prefix(const ModelConfig& config) {
  return config.kind == "bert"         ? "bert."
         : config.kind == "distilbert" ? "distilbert."
         : config.is_llama()           ? "model."
                                       : "transformer.";
}

bool has_vocabulary_rows(const std::string& name) {
  for (const char* table : {"wte.weight", "lm_head.weight", "embeddings.word_embeddings.weight",
                            "cls.predictions.bias", "vocab_projector.bias"})
    if (name == table) return true;
  return false;
}

bool is_conv1d(const std::string& name, const ModelConfig& config) {
  if (config.is_llama()) return false;
  for (const char* layer :
       {".attn.c_attn.weight", ".attn.c_proj.weight", ".mlp.c_fc.weight", ".mlp.c_proj.weight"}) {
    if (name.ends_with(layer)) return true;
  }
  return false;
}

namespace {

bool begins_with(const std::string& text, const std::string& begin) {
  return text.rfind(begin, 0) == 0;
}

std::string saved_name(const std::string& name, const ModelConfig& config) {
  return name == "lm_head.weight" || is_of_head(name, config) ? name : saved_prefix(config) + name;
}

std::vector<int64_t> stored_shape(const Parameter& parameter, const ModelConfig& config) {
  std::vector<int64_t> shape = parameter.shape;
  if (is_conv1d(parameter.name, config)) std::swap(shape[0], shape[1]);
  if (has_vocabulary_rows(parameter.name)) shape[0] = config.vocabulary;
  return shape;
}

int64_t elements_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// A parameter that is one tensor.
StoredPart whole(const Parameter& parameter, const ModelConfig& config) {
  std::vector<int64_t> shape = parameter.shape;
  Shard shard = parameter.shard;
  if (is_conv1d(parameter.name, config)) {
    std::swap(shape[0], shape[1]);
    shard.dimension = 1 - shard.dimension;
  }
  StoredPart part{saved_name(parameter.name, config), stored_shape(parameter, config), {}};
  const int64_t end = elements_of(part.shape);
  for (ElementRun run : runs_of(shape, shard)) {
    run.count = std::min(run.count, end - run.global);
    if (run.count > 0) part.runs.push_back(run);
  }
  return part;
}

// Llama's tensors that a block's parameter of this name holds, in the order of Parameter::fused.
std::vector<const char*> llama_block_parts(const std::string& name) {
  if (name == "ln_1.weight") return {"input_layernorm.weight"};
  if (name == "ln_2.weight") return {"post_attention_layernorm.weight"};
  if (name == "attn.c_proj.weight") return {"self_attn.o_proj.weight"};
  if (name == "mlp.c_proj.weight") return {"mlp.down_proj.weight"};
  if (name == "mlp.c_fc.weight") return {"mlp.gate_proj.weight", "mlp.up_proj.weight"};
  return {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"};
}

// Each process has an equal share of each of the tensors' rows.
std::vector<StoredPart> llama_parts(const Parameter& parameter, const ModelConfig& config) {
  const std::string& name = parameter.name;
  std::string block;
  std::vector<const char*> found{name.c_str()};
  if (name == "wte.weight") found = {"embed_tokens.weight"};
  if (name == "ln_f.weight") found = {"norm.weight"};
  if (begins_with(name, "h.")) {
    const size_t dot = name.find('.', 2);
    block = "layers." + name.substr(2, dot - 1);
    found = llama_block_parts(name.substr(dot + 1));
  }
  std::vector<StoredPart> parts;
  int64_t local = 0;
  for (const char* part : found) {
    const size_t place = parts.size();
    parts.push_back(whole(parameter, config));
    StoredPart& stored = parts.back();
    stored.name = saved_name(block + part, config);
    if (parameter.fused.empty()) continue;
    stored.shape[0] = parameter.fused[place];
    const int64_t share = elements_of(stored.shape) / parameter.shard.count;
    stored.runs = {{parameter.shard.index * share, local, share}};
    local += share;
  }
  return parts;
}

// Q, K and V of an encoder. No process has a part of them only.
std::vector<StoredPart> queries_keys_values(const Parameter& parameter, const ModelConfig& config) {
  const size_t at = parameter.name.rfind("qkv");
  const bool bert = config.kind == "bert";
  std::vector<StoredPart> parts;
  for (const char* name :
       {bert ? "query" : "q_lin", bert ? "key" : "k_lin", bert ? "value" : "v_lin"}) {
    StoredPart part;
    part.name = saved_name(
        parameter.name.substr(0, at) + name + parameter.name.substr(at + std::strlen("qkv")),
        config);
    part.shape = parameter.shape;
    part.shape[0] = parameter.fused[parts.size()];
    const int64_t n = elements_of(part.shape);
    part.runs = {{0, static_cast<int64_t>(parts.size()) * n, n}};
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

std::string StoredPart::bare_name(const ModelConfig& config) const {
  const std::string prefix = saved_prefix(config);
  return begins_with(name, prefix) ? name.substr(prefix.size()) : name;
}

std::vector<StoredPart> stored_parts(const Parameter& parameter, const ModelConfig& config) {
  if (config.encoder() && parameter.name.find(".qkv.") != std::string::npos)
    return queries_keys_values(parameter, config);
  if (config.is_llama()) return llama_parts(parameter, config);
  return {whole(parameter, config)};
}

namespace {

// Names, without prefix, of other tensors that are this one. Files have one of a model's tied weights
// at least: safetensors.torch.save_model() keeps the name that comes first in the alphabet.
std::vector<std::string> other_names(const std::string& name, const ModelConfig& config) {
  if (!config.encoder()) {
    const bool tied =
        config.tied_embeddings && (name == "wte.weight" || name == "embed_tokens.weight");
    return tied ? std::vector<std::string>{"lm_head.weight"} : std::vector<std::string>();
  }
  if (config.task == Task::pretraining && name == "embeddings.word_embeddings.weight")
    return {config.kind == "bert" ? "cls.predictions.decoder.weight" : "vocab_projector.weight"};
  if (name == "cls.predictions.bias") return {"cls.predictions.decoder.bias"};
  for (const auto& [ours, old] : {std::pair("LayerNorm.weight", "LayerNorm.gamma"),
                                  std::pair("LayerNorm.bias", "LayerNorm.beta")})
    if (name.ends_with(ours)) return {name.substr(0, name.size() - std::strlen(ours)) + old};
  return {};
}

}  // namespace

std::vector<std::string> all_names(const std::string& bare_name, const ModelConfig& config) {
  std::vector<std::string> bare = other_names(bare_name, config), names;
  bare.insert(bare.begin(), bare_name);
  for (const std::string& name : bare)
    names.insert(names.end(), {name, saved_prefix(config) + name});
  return names;
}

namespace {

using Layers = std::vector<std::string>;

// Whether it is a parameter of one of these layers.
bool is_in(const Layers& layers, const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return false;
  const std::string parameter = name.substr(dot + 1);
  const bool known =
      parameter == "weight" || parameter == "bias" || parameter == "gamma" || parameter == "beta";
  return known && std::find(layers.begin(), layers.end(), name.substr(0, dot)) != layers.end();
}

}  // namespace

bool is_of_head(const std::string& name, const ModelConfig& config) {
  static const Layers bert{"cls.predictions",
                           "cls.predictions.transform.dense",
                           "cls.predictions.transform.LayerNorm",
                           "cls.predictions.decoder",
                           "cls.seq_relationship",
                           "classifier",
                           "qa_outputs"};
  static const Layers distilbert{"vocab_transform", "vocab_layer_norm", "vocab_projector",
                                 "pre_classifier",  "classifier",       "qa_outputs"};
  return config.encoder() && is_in(config.kind == "bert" ? bert : distilbert, name);
}

bool is_ignored(const std::string& name, const ModelConfig& config) {
  if (!config.encoder())
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
           name.ends_with(".rotary_emb.inv_freq");
  // BERT's pooler has the prefix, and not all heads need it.
  return is_of_head(name, config) || (config.kind == "bert" && is_in({"pooler.dense"}, name)) ||
         name == "embeddings.position_ids";
}

void transpose(const char* from, int64_t rows, int64_t columns, size_t element, char* to) {
  if (element == 2) return transpose_elements<uint16_t>(from, rows, columns, to);
  if (element == 4) return transpose_elements<uint32_t>(from, rows, columns, to);
  transpose_elements<uint64_t>(from, rows, columns, to);
}

}  // namespace tally::train
