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

std::vector<ModelPart> parts_of(const Config& config, const MeshPosition& position) {
  const int stages = config.pipeline_parallel;
  const int64_t layers = config.model.layers;
  const int64_t of_part =
      config.virtual_pipeline_layers > 0 ? config.virtual_pipeline_layers : layers / stages;
  const int64_t chunks = layers / stages / of_part;
  std::vector<ModelPart> parts;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    ModelPart part;
    part.first_layer = (chunk * stages + position.stage) * of_part;
    part.layers = of_part;
    part.first = part.first_layer == 0;
    part.last = part.first_layer + of_part == layers;
    part.shard = position.shard;
    part.shards = config.tensor_parallel;
    part.sequence = config.sequence_parallel;
    parts.push_back(part);
  }
  return parts;
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
                                  const ParameterTable& table, Stream& stream,
                                  Communicator* tensor) {
  return config.model.language_model() ? make_gpt(config, part, table, stream, tensor)
                                       : make_encoder(config, table, stream);
}

std::unique_ptr<Stage> make_model(const Config& config, const ParameterTable& table,
                                  Stream& stream) {
  return make_model(config, whole_model(config.model), table, stream, nullptr);
}

}  // namespace tally::train
