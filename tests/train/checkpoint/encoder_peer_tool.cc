// For peer_encoders_test.py: loss and gradients of an encoder with weights of Hugging Face, and the
// same model saved again.
//   encoder_peer_tool MODEL TASK BATCH.json GRADIENTS.safetensors COPY
// BATCH.json has "padded" and "sequences": ids, types, masked, labels, class, start, end of each.
// Prints the loss and, on a second line, the parameters that MODEL does not have.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/checkpoint/hugging_face.h"
#include "src/checkpoint/model_config_file.h"
#include "src/checkpoint/model_weights.h"
#include "src/device/arena.h"
#include "src/model/stage.h"

using namespace tally::train;

namespace {

using Json = nlohmann::json;

Task task_of(const std::string& name) {
  return name == "pretraining"      ? Task::pretraining
         : name == "classification" ? Task::classification
         : name == "answers"        ? Task::question_answering
                                    : Task::language_model;
}

// A micro batch in memory of its own, as the loader lays it out.
struct HostRows {
  std::vector<int32_t> ids, types, positions, starts, firsts, lengths, masked, first, second;

  HostRows(const Json& sequences, Task task, int64_t row) {
    for (const Json& s : sequences) {
      const auto begin = static_cast<int32_t>(ids.size());
      const auto tokens = s["ids"].get<std::vector<int32_t>>();
      const auto length = static_cast<int32_t>(tokens.size());
      firsts.push_back(begin);
      starts.push_back(begin);
      lengths.push_back(length);
      ids.insert(ids.end(), tokens.begin(), tokens.end());
      for (const int32_t type : s["types"]) types.push_back(type);
      for (int32_t i = 0; i < length; ++i) positions.push_back(i);
      for (const int32_t place : s["masked"]) masked.push_back(begin + place);
      if (task == Task::pretraining)
        for (const int32_t label : s["labels"]) first.push_back(label);
      if (task == Task::classification) first.push_back(s["class"]);
      if (task == Task::question_answering) first.push_back(s["start"]);
      second.push_back(task == Task::question_answering ? s["end"] : s["class"]);
      if (row == 0 || length == row) continue;
      starts.push_back(begin + length);
      ids.resize(static_cast<size_t>(begin + row), 0);
      types.resize(ids.size(), 0);
    }
    starts.push_back(static_cast<int32_t>(ids.size()));
  }
};

Tensor list(std::vector<int32_t>& values) {
  return {values.data(), DType::i32, {static_cast<int64_t>(values.size())}};
}

Batch batch_of(HostRows& host, const Config& c, bool padded) {
  const int64_t rows = padded ? c.micro_batch : 1;
  const auto matrix = [&](std::vector<int32_t>& values) {
    return Tensor(values.data(), DType::i32, {rows, static_cast<int64_t>(values.size()) / rows});
  };
  Batch batch;
  batch.ids = matrix(host.ids);
  if (c.model.kind() == "bert") batch.token_types = matrix(host.types);
  if (!padded) batch.positions = matrix(host.positions);
  batch.cu_seqlens = list(host.starts);
  batch.firsts = list(host.firsts);
  batch.lengths = list(host.lengths);
  if (c.model.task == Task::pretraining) batch.rows = list(host.masked);
  batch.labels = {list(host.first), list(host.second)};
  batch.first = true;
  return batch;
}

int run(const std::vector<std::string>& args) {
  const Json input = Json::parse(std::ifstream(args[2]));
  Config c;
  c.model.task = task_of(args[1]);
  c.model = read_model_config(args[0], c.model, 8);
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.model.classifier_dropout = 0;
  c.micro_batch = static_cast<int64_t>(input["sequences"].size());
  for (const Json& s : input["sequences"])
    c.sequence = std::max<int64_t>(c.sequence == 1024 ? 0 : c.sequence,
                                   static_cast<int64_t>(s["ids"].size()));
  const bool padded = input["padded"];
  const auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(*stream, DType::f32);
  table.initialize(1);
  const ParameterState weights(table);
  const std::vector<std::string> missing = load_model_weights(args[0], c.model, weights, *stream);
  const auto model = make_model(c, table, *stream);
  const auto set = model->make_activations();
  HostRows host(input["sequences"], c.model.task, padded ? c.sequence : 0);
  const Batch batch = batch_of(host, c, padded);
  StepState state{};
  state.loss_scale = 1;
  model->forward(batch, {1, {}, &state}, *set);
  model->backward(*set);
  std::printf("%.9g\n%s\n", state.loss(), Json(missing).dump().c_str());
  ParameterState gradients(table);
  gradients.weights = table.gradients();
  save_model_weights(args[3], gradients, *stream);
  save_hugging_face(args[4], c.model, {}, weights, *stream);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 6) return run({argv + 1, argv + argc});
    std::cerr << "usage: encoder_peer_tool MODEL TASK BATCH GRADIENTS COPY\n";
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
  }
  return 1;
}
