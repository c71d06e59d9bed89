// Where a model in Hugging Face's layout may be written, and what a write that fails leaves.
#include "src/checkpoint/hugging_face.h"

#include <doctest/doctest.h>

#include "src/checkpoint/checkpoint.h"
#include "src/model/model.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string fault(const std::string& directory) {
  return error_of([&] { check_hugging_face_target(directory); });
}

ModelConfig tiny_config() {
  ModelConfig config;
  config.layers = 1, config.hidden = 8, config.heads = 2, config.ffn = 16;
  config.max_positions = 4, config.vocabulary = 11, config.padded_vocabulary = 16;
  return config;
}

struct Tiny {
  Tiny() : config(tiny_config()), stream(make_stream(Device{})) {
    register_gpt(config, &table);
    table.layout(*stream, DType::f32, false);
    table.initialize(1);
  }
  void save(const std::string& directory, const DataConfig& data = {}) {
    save_hugging_face(directory, config, data, "", ParameterState(table), *stream);
  }
  ModelConfig config;
  std::unique_ptr<Stream> stream;
  ParameterTable table;
};

}  // namespace

TEST_CASE("whether a model can be written is tried, and nothing is left of it") {
  const TempDir dir;
  CHECK(fault(dir / "new/er/model").empty());
  CHECK(dir.names().empty());
  dir.write("file", "");
  CHECK(contains(fault(dir / "file"), "is there and is no folder"));
  CHECK(contains(fault(dir / "file/model"), "'" + dir / "file/model'"));
  CHECK(contains(fault(dir / ""), "holds files and no config.json"));
  dir.write("config.json", "{}");
  CHECK(fault(dir / "").empty());
  CHECK(dir.names() == "config.json file ");
  // Where even root may not.
  CHECK(contains(fault("/proc/zz"), "the model cannot be written to '/proc/zz': '/proc/"));
}

TEST_CASE("a model that cannot be written whole leaves nothing; over another it leaves that") {
  const TempDir dir;
  Tiny tiny;
  DataConfig lost;
  lost.vocab_file = dir / "none.json";
  lost.merge_file = dir / "none.txt";
  CHECK(contains(error_of([&] { tiny.save(dir / "model", lost); }), "none.json"));
  CHECK(dir.names().empty());
  fs::create_directories(dir / "model");
  tiny.save(dir / "model/");
  const std::string before = dir.read("model/model.safetensors");
  CHECK(!before.empty());
  CHECK_FALSE(error_of([&] { tiny.save(dir / "model", lost); }).empty());
  CHECK(dir.read("model/model.safetensors") == before);
  tiny.table.initialize(2);
  tiny.save(dir / "model");
  CHECK(dir.read("model/model.safetensors") != before);
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(dir / "model")) entries += entry.exists();
  CHECK(entries == 2);
  CHECK(dir.names() == "model ");
}
