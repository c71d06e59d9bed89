// The parameters of GPT and Llama under the names of Hugging Face's GPT-2.
#include <cmath>

#include "src/model/stage.h"

namespace tally::train {
namespace {

// Adds the parameters of a part, divided among its shards.
class GptRegistration {
 public:
  GptRegistration(const ModelPart& part, ParameterTable* table) : part_(part), table_(*table) {}

  // A matrix or vector that every shard has as a whole.
  void undivided(Parameter p) const {
    p.copy = part_.shard > 0;
    table_.add(std::move(p));
  }
  // Divided along a dimension, in equal shares of every section.
  void divided(Parameter p, int dimension, std::vector<int64_t> sections = {}) const {
    if (part_.shards > 1) p.shard = {dimension, std::move(sections), part_.shard, part_.shards};
    table_.add(std::move(p));
  }

 private:
  const ModelPart& part_;
  ParameterTable& table_;
};

Parameter matrix(std::string name, int64_t rows, int64_t columns, double std) {
  Parameter p;
  p.name = std::move(name);
  p.shape = {rows, columns};
  p.group = ParameterGroup::decayed;
  p.init_std = std;
  return p;
}

Parameter vocabulary_matrix(std::string name, const ModelConfig& config) {
  Parameter p = matrix(std::move(name), config.padded_vocabulary, config.hidden, config.init_std);
  p.padding_rows = config.padded_vocabulary - config.vocabulary;
  return p;
}

Parameter vector(std::string name, int64_t n, double value) {
  Parameter p;
  p.name = std::move(name);
  p.shape = {n};
  p.init_value = value;
  return p;
}

// RMSNorm has no bias.
void register_norm(const GptRegistration& add, const ModelConfig& config, const std::string& name) {
  add.undivided(vector(name + ".weight", config.hidden, 1));
  if (!config.is_llama()) add.undivided(vector(name + ".bias", config.hidden, 0));
}

void register_block(const GptRegistration& add, const ModelConfig& config, int64_t layer) {
  const int64_t c = config.hidden, f = config.ffn;
  const int64_t width = config.attention_width(), qkv = config.qkv_width();
  const double std = config.init_std;
  // GPT-2: what is added to the residual stream starts smaller by the root of the number of
  // additions.
  const double output_std = std / std::sqrt(2.0 * static_cast<double>(config.layers));
  const std::string h = "h." + std::to_string(layer) + ".";
  const bool biases = !config.is_llama();
  register_norm(add, config, h + "ln_1");
  const auto of_block = [&](Parameter p, const std::vector<int64_t>& sections = {}) {
    p.block = layer;
    if (config.is_llama()) p.fused = sections;
    return p;
  };
  // Each shard has its heads of Q, of K and of V, and its gates and ups.
  const int64_t kv = (qkv - width) / 2;
  const std::vector<int64_t> heads{width, kv, kv};
  const std::vector<int64_t> fc = biases ? std::vector<int64_t>() : std::vector<int64_t>{f, f};
  add.divided(of_block(matrix(h + "attn.c_attn.weight", qkv, c, std), heads), 0, heads);
  if (biases) add.divided(vector(h + "attn.c_attn.bias", qkv, 0), 0, heads);
  add.divided(of_block(matrix(h + "attn.c_proj.weight", c, width, output_std)), 1);
  if (biases) add.undivided(vector(h + "attn.c_proj.bias", c, 0));
  register_norm(add, config, h + "ln_2");
  add.divided(of_block(matrix(h + "mlp.c_fc.weight", config.fc_width(), c, std), fc), 0, fc);
  if (biases) add.divided(vector(h + "mlp.c_fc.bias", f, 0), 0);
  add.divided(of_block(matrix(h + "mlp.c_proj.weight", c, f, output_std)), 1);
  if (biases) add.undivided(vector(h + "mlp.c_proj.bias", c, 0));
}

}  // namespace

ModelPart whole_model(const ModelConfig& config) {
  ModelPart part;
  part.layers = config.layers;
  return part;
}

void register_gpt(const ModelConfig& config, const ModelPart& part, ParameterTable* table) {
  const GptRegistration add(part, table);
  const int64_t c = config.hidden;
  // The last stage of a pipeline has a copy of the embedding that its head is tied to.
  if (part.first || (part.last && config.tied_embeddings)) {
    Parameter p = vocabulary_matrix("wte.weight", config);
    p.copy = !part.first;
    add.divided(std::move(p), 0);
  }
  if (part.first && config.positions == Positions::learned)
    add.undivided(matrix("wpe.weight", config.max_positions, c, config.init_std));
  for (int64_t l = part.first_layer; l < part.first_layer + part.layers; ++l)
    register_block(add, config, l);
  if (!part.last) return;
  register_norm(add, config, "ln_f");
  if (!config.tied_embeddings) add.divided(vocabulary_matrix("lm_head.weight", config), 0);
}

void register_gpt(const ModelConfig& config, ParameterTable* table) {
  register_gpt(config, whole_model(config), table);
}

}  // namespace tally::train
