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
  if (!config.encoder()) return register_gpt(config, part, table);
  if (!part.whole()) throw std::invalid_argument("an encoder is one part");
  register_encoder(config, table);
}

void register_model(const ModelConfig& config, ParameterTable* table) {
  register_model(config, whole_model(config), table);
}

std::unique_ptr<Stage> make_model(const Config& config, const ModelPart& part,
                                  const ParameterTable& table, const Compute& compute,
                                  Communicator* tensor) {
  return config.model.encoder() ? make_encoder(config, table, compute)
                                : make_gpt(config, part, table, compute, tensor);
}

std::unique_ptr<Stage> make_model(const Config& config, const ParameterTable& table,
                                  const Compute& compute) {
  return make_model(config, whole_model(config.model), table, compute, nullptr);
}

}  // namespace tally::train
