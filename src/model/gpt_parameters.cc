// GPT's parameters under Hugging Face's names.
#include <cmath>

#include "src/model/stage.h"

namespace tally::train {
namespace {

Parameter matrix(std::string name, int64_t rows, int64_t columns, double std) {
  Parameter p;
  p.name = std::move(name);
  p.shape = {rows, columns};
  p.group = ParameterGroup::decayed;
  p.init_std = std;
  return p;
}

Parameter vector(std::string name, int64_t n, double value) {
  Parameter p;
  p.name = std::move(name);
  p.shape = {n};
  p.init_value = value;
  return p;
}

}  // namespace

void register_gpt(const ModelConfig& config, ParameterTable* table) {
  const int64_t c = config.hidden, f = config.ffn;
  const double std = config.init_std;
  // GPT-2: what is added to the residual stream starts smaller by the root of the number of
  // additions.
  const double output_std = std / std::sqrt(2.0 * static_cast<double>(config.layers));
  table->add(matrix("wte.weight", config.padded_vocabulary, c, std));
  if (config.positions == Positions::learned) {
    table->add(matrix("wpe.weight", config.max_positions, c, std));
  }
  const auto linear = [&](const std::string& name, int64_t out, int64_t in, double s) {
    table->add(matrix(name + ".weight", out, in, s));
    table->add(vector(name + ".bias", out, 0));
  };
  const auto norm = [&](const std::string& name) {
    table->add(vector(name + ".weight", c, 1));
    table->add(vector(name + ".bias", c, 0));
  };
  for (int64_t l = 0; l < config.layers; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    norm(h + "ln_1");
    linear(h + "attn.c_attn", 3 * c, c, std);
    linear(h + "attn.c_proj", c, c, output_std);
    norm(h + "ln_2");
    linear(h + "mlp.c_fc", f, c, std);
    linear(h + "mlp.c_proj", c, f, output_std);
  }
  norm("ln_f");
  if (!config.tied_embeddings)
    table->add(matrix("lm_head.weight", config.padded_vocabulary, c, std));
}

}  // namespace tally::train
