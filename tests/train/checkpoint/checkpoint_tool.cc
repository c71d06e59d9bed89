// checkpoint_tool DIR: writes a safetensors file of every type we have and a small GPT-2 with its
// config.json, for the Python test; one training as checkpoints of one process (DIR/one) and of
// several (DIR/many), and its model as several processes export it (DIR/exported); then, where
// DIR/from_python.safetensors is, prints what it holds as lines "name dtype hex".
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "src/checkpoint/hugging_face.h"
#include "src/checkpoint/model_config_file.h"
#include "src/checkpoint/model_weights.h"
#include "src/model/stage.h"
#include "tests/train/checkpoint/layouts.h"

namespace {

void write_layouts(const std::string& dir) {
  constexpr uint64_t training = 7;
  layouts::Ranks one({}, layouts::DType::bf16, training);
  one.save(dir + "/one", layouts::state_of(3));
  layouts::Ranks many({2, 2, 2, layouts::Zero::buckets, 14}, layouts::DType::bf16, training);
  many.save(dir + "/many", layouts::state_of(3));
  layouts::Ranks tensor({2, 2, 1, layouts::Zero::none, 14}, layouts::DType::f32, training);
  tensor.together([&](int, layouts::Part& part, const layouts::SaveGroup& group) {
    save_hugging_face(dir + "/exported", part.config, {}, part.state(), *part.stream, group);
  });
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tally::train;
  if (argc != 2) return 2;
  const std::string dir = argv[1];
  std::vector<TensorSource> sources;
  for (DType t : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32,
                  DType::u16, DType::u8}) {
    for (const char* suffix : {".b", ".a"}) {
      TensorSource source{std::string(safetensors_name(t)) + suffix, t, {2, 3}, nullptr};
      const size_t bytes = source.bytes();
      source.fill = [bytes](char* out) {
        for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i);
      };
      sources.push_back(source);
    }
  }
  write_safetensors(dir + "/types.safetensors", sources);

  ModelConfig config;
  config.layers = 2, config.hidden = 16, config.heads = 4, config.ffn = 64,
  config.max_positions = 8;
  config.vocabulary = 50, config.padded_vocabulary = 64;
  const auto stream = make_stream(Device{});
  ParameterTable table;
  register_model(config, &table);
  table.allocate(*stream, DType::f32);
  table.initialize(1);
  std::filesystem::create_directories(dir + "/model");
  save_model_weights(dir + "/model/model.safetensors", ParameterState(table), *stream);
  std::ofstream(dir + "/model/config.json") << model_config_json(config, DType::f32);

  write_layouts(dir);

  const std::string from_python = dir + "/from_python.safetensors";
  if (!std::filesystem::exists(from_python)) return 0;
  const SafetensorsFile file(from_python);
  for (const auto& [name, tensor] : file.tensors()) {
    std::printf("%s %s ", name.c_str(), tensor.dtype.c_str());
    for (size_t i = 0; i < tensor.bytes; ++i)
      std::printf("%02x", static_cast<unsigned char>(tensor.data[i]));
    std::printf("\n");
  }
  return 0;
}
