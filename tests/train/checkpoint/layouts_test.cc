// Checkpoints of runs whose processes hold parts of the model: saved by any layout, loaded by any
// other, bit for bit.
#include "tests/train/checkpoint/layouts.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "src/checkpoint/hugging_face.h"
#include "src/checkpoint/model_config_file.h"
#include "tests/train/data/temp_dir.h"

using namespace layouts;

namespace {

constexpr uint64_t training = 7, other = 8;

std::vector<Layout> all_layouts() {
  std::vector<Layout> all;
  for (const int tensor : {1, 2, 4})
    for (const int pipeline : {1, 2})
      for (const Layout& l :
           {Layout{tensor, pipeline, 1}, Layout{tensor, pipeline, 2},
            Layout{tensor, pipeline, 2, Zero::ranges}, Layout{tensor, pipeline, 3, Zero::buckets}})
        all.push_back(l);
  // The padding differs between layouts, as Megatron's does.
  for (Layout& l : all) l.padded = l.tensor == 1 ? 11 : l.tensor == 2 ? 14 : 20;
  return all;
}

// What a rank of `layout` has after loading `root` into buffers with other numbers.
void check_loaded(const std::string& root, const Layout& layout, DType compute, int64_t rows) {
  for (int r = 0; r < layout.shape().size(); ++r) {
    Part part(layout, r, compute);
    const Part::Numbers expected = part.expected(training, rows);
    part.set(part.expected(other));
    REQUIRE((part.actual() != expected));
    const auto state = load_checkpoint(root, part.config, part.state(), *part.stream);
    REQUIRE(state.has_value());
    CHECK_MESSAGE((part.actual() == expected), "rank ", r, " of ", name_of(layout));
  }
}

void save_all(const Layout& layout, DType compute, const std::string& root) {
  Ranks ranks(layout, compute, training);
  for (const std::string& error : ranks.save(root, state_of(10))) REQUIRE(error == "");
}

}  // namespace

TEST_CASE("a checkpoint of any layout is loaded by every layout, bit for bit") {
  const std::vector<Layout> layouts = all_layouts();
  for (const DType compute : {DType::bf16, DType::f32}) {
    for (const Layout& from : layouts) {
      if (compute == DType::f32 && from.pipeline == 1) continue;
      CAPTURE(name_of(from));
      const TempDir dir;
      save_all(from, compute, dir / "c");
      for (const Layout& to : layouts) check_loaded(dir / "c", to, compute, from.padded);
    }
  }
}

TEST_CASE("float64 from and to a layout of everything") {
  const Layout one{1, 1, 1, Zero::none, 11}, many{2, 2, 3, Zero::buckets, 14};
  const TempDir dir;
  save_all(one, DType::f64, dir / "one");
  save_all(many, DType::f64, dir / "many");
  check_loaded(dir / "one", many, DType::f64, 11);
  check_loaded(dir / "many", one, DType::f64, 14);
}

TEST_CASE("the files of a checkpoint: one part for each process that has something to write") {
  const auto names = [](const Layout& layout) {
    const TempDir dir;
    save_all(layout, DType::bf16, dir / "c");
    CHECK(dir.read("c/latest_checkpointed_iteration.txt") == "10\n");
    std::string all;
    std::vector<std::string> sorted;
    for (const auto& entry : std::filesystem::directory_iterator(dir / "c/iter_0000010"))
      sorted.push_back(entry.path().filename());
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& name : sorted) all += name + " ";
    return all;
  };
  const std::string whole =
      "config.json manifest.json model.safetensors optimizer.safetensors state.json ";
  CHECK(names({}) == whole);
  CHECK(names({1, 1, 2}) == whole);
  CHECK(names({1, 1, 1, Zero::ranges}) == whole);
  CHECK(names({2, 1, 2, Zero::none, 14}) ==
        "config.json manifest.json model.safetensors optimizer-00001-of-00002.safetensors "
        "optimizer-00002-of-00002.safetensors state.json ");
  CHECK(names({1, 1, 3, Zero::ranges}) ==
        "config.json manifest.json model.safetensors optimizer-00001-of-00003.safetensors "
        "optimizer-00002-of-00003.safetensors optimizer-00003-of-00003.safetensors state.json ");
}

TEST_CASE("the model in Hugging Face's format is the same file whichever layout writes it") {
  for (const DType compute : {DType::bf16, DType::f32}) {
    const TempDir dir;
    save_all({1, 1, 1, Zero::none, 11}, compute, dir / "one");
    const std::string one = dir.read("one/iter_0000010/model.safetensors");
    REQUIRE(one.size() > 1000);
    for (const Layout& layout : all_layouts()) {
      CAPTURE(name_of(layout));
      save_all(layout, compute, dir / "c");
      CHECK((dir.read("c/iter_0000010/model.safetensors") == one));
      std::filesystem::remove_all(dir / "c");
      // --save-hf, to a new folder and over an older model.
      for (const uint64_t numbers : {other, training}) {
        Ranks ranks(layout, compute, numbers);
        const auto errors = ranks.together([&](int, Part& part, const SaveGroup& group) {
          save_hugging_face(dir / "hf", part.config, {}, part.state(), *part.stream, group);
        });
        for (const std::string& error : errors) REQUIRE(error == "");
        CHECK((dir.read("hf/model.safetensors") == one) == (numbers == training));
      }
      int entries = 0;
      for (const auto& entry : std::filesystem::directory_iterator(dir / "hf"))
        entries += entry.exists();
      CHECK(entries == 2);
      CHECK(dir.names() == "hf one ");
      std::filesystem::remove_all(dir / "hf");
    }
  }
}

TEST_CASE("every layout reads its part of a model in Hugging Face's format") {
  const TempDir dir;
  save_all({1, 1, 1, Zero::none, 11}, DType::f32, dir / "one");
  const std::string folder = dir / "one/iter_0000010";
  for (const DType compute : {DType::f32, DType::bf16}) {
    for (const Layout& layout : all_layouts()) {
      CAPTURE(name_of(layout));
      for (int r = 0; r < layout.shape().size(); ++r) {
        for (const bool with_optimizer : {true, false}) {
          Part part(layout, r, compute, with_optimizer);
          part.set(part.expected(other));
          load_model_weights(folder, part.config, part.state(), *part.stream);
          Part::Numbers expected = part.expected(training, 11);
          const Part::Numbers before = part.expected(other);
          for (int i : {1, 2}) expected.buffers[i] = before.buffers[i];  // moments stay
          CHECK((part.actual() == expected));
        }
      }
    }
  }
}

TEST_CASE("weights alone, from a checkpoint without the optimizer's state") {
  const TempDir dir;
  const Layout from{2, 2, 2, Zero::buckets, 14}, to{4, 1, 1, Zero::none, 20};
  Ranks ranks(from, DType::f32, training);
  TrainingState state = state_of(10);
  state.optimizer = false;
  for (const std::string& error : ranks.save(dir / "c", state)) REQUIRE(error == "");
  // The manifest has the checksums of the files that there are.
  const auto json = nlohmann::json::parse(dir.read("c/iter_0000010/manifest.json"));
  CHECK(json["files"].size() == 3);
  CHECK(!json.contains("parameters"));
  for (int r = 0; r < 4; ++r) {
    Part part(to, r, DType::f32, false);
    REQUIRE(load_checkpoint(dir / "c", part.config, part.state(), *part.stream).has_value());
    CHECK((part.actual() == part.expected(training, 11)));
  }
}
