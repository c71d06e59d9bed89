#include "src/model/stage.h"

#include <stdexcept>

namespace tally::train {

std::vector<int> reported_parameters(const std::vector<Stage*>& stages) {
  std::vector<int> ids;
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    const std::vector<int> of_stage = (*stage)->reported_parameters();
    ids.insert(ids.end(), of_stage.begin(), of_stage.end());
  }
  return ids;
}

void register_model(const ModelConfig& config, const ModelPart& part, ParameterTable* table) {
  if (!config.language_model() && !part.whole())
    throw std::invalid_argument("an encoder is one part");
  for (WeightSpec& weight : weights_of(config, part)) {
    Parameter p{std::move(weight), {}};
    if (part.shards > 1 && p.division != Division::whole)
      p.shard = {p.division == Division::rows ? 0 : 1, p.sections, part.shard, part.shards};
    table->add(std::move(p));
  }
}

void register_model(const ModelConfig& config, ParameterTable* table) {
  register_model(config, whole_model(config), table);
}

std::unique_ptr<Stage> make_model(const Config& config, const ModelPart& part,
                                  const ParameterTable& table, const Compute& compute,
                                  Communicator* tensor) {
  return config.model.language_model() ? make_gpt(config, part, table, compute, tensor)
                                       : make_encoder(config, table, compute);
}

std::unique_ptr<Stage> make_model(const Config& config, const ParameterTable& table,
                                  const Compute& compute) {
  return make_model(config, whole_model(config.model), table, compute, nullptr);
}

}  // namespace tally::train
