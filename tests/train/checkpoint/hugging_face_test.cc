// Where a model in Hugging Face's format may be written, and what a failed write leaves.
#include "src/checkpoint/hugging_face.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/model_config_file.h"
#include "src/data/tokenizers/tokenizer_settings.h"
#include "src/model/stage.h"
#include "tests/train/data/small_vocabulary.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string fault(const std::string& directory, bool goes_on = false) {
  return error_of([&] { check_hugging_face_target(directory, goes_on); });
}

ModelConfig tiny_config() {
  ModelConfig config;
  config.layers = 1, config.hidden = 8, config.heads = 2, config.ffn = 16;
  config.max_positions = 4, config.vocabulary = 11, config.padded_vocabulary = 16;
  return config;
}

struct Tiny {
  Tiny() : config(tiny_config()), stream(make_stream(Device{})) {
    register_model(config, &table);
    table.allocate(*stream, DType::f32);
    table.initialize(1);
  }
  void save(const std::string& directory, const SideFiles& side = {}) {
    save_hugging_face(directory, config, side, ParameterState(table), *stream);
  }
  ModelConfig config;
  std::unique_ptr<Stream> stream;
  ParameterTable table;
};

}  // namespace

TEST_CASE("writing a model is tried in advance and leaves nothing") {
  const TempDir dir;
  CHECK(fault(dir / "new/er/model").empty());
  CHECK(dir.names().empty());
  dir.write("file", "");
  CHECK(contains(fault(dir / "file"), "exists but is not a directory"));
  CHECK(contains(fault(dir / "file/model"), "'" + dir / "file/model'"));
  CHECK(contains(fault(dir / ""), "holds files but no config.json"));
  dir.write("config.json", R"({"model_type":"t5"})");
  CHECK(contains(fault(dir / ""), "already holds a model"));
  CHECK(contains(fault(dir / "", true), "a model of type \"t5\""));
  dir.write("config.json", model_config_json(tiny_config(), DType::f32));
  CHECK(contains(fault(dir / ""), "only a run that resumes its training (--load) replaces"));
  CHECK(fault(dir / "", true).empty());
  CHECK(dir.names() == "config.json file ");
  dir.write("state.json", "{}");
  CHECK(contains(fault(dir / "", true), "is a checkpoint of --save"));
  // Where even root cannot write.
  CHECK(contains(fault("/proc/zz"), "the model cannot be written to '/proc/zz': '/proc/"));
}

TEST_CASE("a failed write of a model leaves nothing, or the older model") {
  const TempDir dir;
  Tiny tiny;
  SideFiles lost;
  lost.files["none/there.json"] = "x";  // a folder that is not there: the write fails
  CHECK(contains(error_of([&] { tiny.save(dir / "model", lost); }), "none/there.json"));
  CHECK(dir.names().empty());
  fs::create_directories(dir / "model");
  tiny.save(dir / "model/");
  const std::string before = dir.read("model/model.safetensors");
  CHECK(!before.empty());
  CHECK_FALSE(error_of([&] { tiny.save(dir / "model", lost); }).empty());
  CHECK(dir.read("model/model.safetensors") == before);
  tiny.table.initialize(2);
  for (const char* shard :
       {"model/model-00001-of-00002.safetensors", "model/model.safetensors.index.json"})
    dir.write(shard, "");
  tiny.save(dir / "model");
  CHECK(dir.read("model/model.safetensors") != before);
  int entries = 0;
  for (const auto& entry : fs::directory_iterator(dir / "model")) entries += entry.exists();
  CHECK(entries == 2);
  CHECK(dir.names() == "model ");
}

TEST_CASE("a model's config.json and tokenizer are copied as they were at the start") {
  const TempDir dir;
  Tiny tiny;
  fs::create_directories(dir / "from");
  dir.write("from/config.json",
            R"({"model_type":"gpt2","n_inner":16,"activation_function":"gelu_pytorch_tanh",
                "bos_token_id":1,"eos_token_id":2,"pad_token_id":3,"dtype":"float32"})");
  dir.write("from/generation_config.json", "{\"eos_token_id\":2}");
  const SideFiles side = read_side_files(tiny.config, {}, dir / "from");
  fs::remove_all(dir / "from");
  tiny.save(dir / "model", side);
  CHECK(dir.read("model/generation_config.json") == "{\"eos_token_id\":2}");
  const std::string config = dir.read("model/config.json");
  for (const char* kept : {"\"bos_token_id\": 1", "\"eos_token_id\": 2", "\"pad_token_id\": 3",
                           "\"gelu_pytorch_tanh\"", "\"dtype\": \"float32\""})
    CHECK(contains(config, kept));
  CHECK(contains(config, "\"n_embd\": 8"));
  CHECK_FALSE(contains(config, "torch_dtype"));
  // Without a config.json the end of a text is the tokenizer's.
  SideFiles known;
  known.end_of_text = 5;
  CHECK(contains(model_config_json(tiny.config, DType::f32, known), "\"eos_token_id\": 5"));
  CHECK(contains(model_config_json(tiny.config, DType::f32), "\"eos_token_id\": 10"));
  ModelConfig padded = tiny.config;
  padded.vocabulary = 50304;
  CHECK(contains(model_config_json(padded, DType::f32), "\"eos_token_id\": 50256"));
}

TEST_CASE("the source's tokenizer.json is not copied next to another tokenizer") {
  const TempDir dir;
  fs::create_directories(dir / "from");
  dir.write("from/config.json", model_config_json(tiny_config(), DType::f32));
  dir.write("from/tokenizer.json", "{}");
  const SmallVocabulary other(dir);
  DataConfig data;
  data.tokenizer = "GPT2BPETokenizer";
  data.vocab_file = other.vocab_file;
  data.merge_file = other.merge_file;
  const SideFiles side = read_side_files(tiny_config(), data, dir / "from");
  CHECK(side.files.count("tokenizer.json") == 0);
  CHECK(side.files.at("vocab.json") == dir.read("vocab.json"));
  CHECK(side.end_of_text == 261);
  // It is copied if the vocabulary is the source's own.
  fs::copy(other.vocab_file, dir / "from/vocab.json");
  fs::copy(other.merge_file, dir / "from/merges.txt");
  data.vocab_file = dir / "from/vocab.json";
  data.merge_file = dir / "from/merges.txt";
  CHECK(read_side_files(tiny_config(), data, dir / "from").files.count("tokenizer.json") == 1);
}

TEST_CASE("a folder's files say whether BERT's texts are lower-cased") {
  const TempDir dir;
  fs::create_directories(dir / "from");
  CHECK_FALSE(stated_lower_case(dir / "from").has_value());
  dir.write("from/tokenizer.json",
            R"({"normalizer": {"type": "BertNormalizer", "lowercase": false}})");
  CHECK(stated_lower_case(dir / "from") == false);
  dir.write("from/tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK(stated_lower_case(dir / "from") == false);
  dir.write("from/tokenizer_config.json", R"({"do_lower_case": true})");
  CHECK(contains(error_of([&] { stated_lower_case(dir / "from"); }), "make them agree"));
  dir.write("from/tokenizer_config.json",
            R"({"do_lower_case": true, "tokenizer_class": "PreTrainedTokenizerFast"})");
  CHECK(stated_lower_case(dir / "from") == false);
  dir.write("from/tokenizer_config.json", R"({"do_lower_case": "no"})");
  CHECK(contains(error_of([&] { stated_lower_case(dir / "from"); }), "neither true nor false"));
}

TEST_CASE("what is written says how BERT's texts were read") {
  const TempDir dir;
  fs::create_directories(dir / "from");
  fs::create_directories(dir / "own");
  dir.write("from/config.json", "{}");
  dir.write("from/tokenizer_config.json", R"({"strip_accents": false, "pad_token": "[PAD]"})");
  DataConfig data;
  data.tokenizer = "BertWordPieceCase";
  const auto config = [&](const std::string& vocab_file) {
    data.vocab_file = vocab_file;
    const SideFiles side = read_side_files(tiny_config(), data, dir / "from");
    return nlohmann::json::parse(side.files.at("tokenizer_config.json"));
  };
  // Another vocabulary's settings are those beside it, and the source's are not.
  const std::string other = dir.write("own/vocab.txt", "[PAD]\n");
  CHECK(config(other)["do_lower_case"] == false);
  CHECK(config(other)["strip_accents"] == false);
  CHECK(config(other)["tokenizer_class"] == "BertTokenizer");
  dir.write("own/tokenizer_config.json", R"({"strip_accents": true, "unk_token": "[UNK]"})");
  CHECK(config(other)["strip_accents"] == true);
  CHECK(config(other)["tokenize_chinese_chars"] == true);
  CHECK(config(other)["unk_token"] == "[UNK]");
  fs::remove(dir / "own/tokenizer_config.json");
  // What a tokenizer.json says is said for a vocab.txt that is taken from beside it, too.
  const std::string whole = dir.write(
      "own/tokenizer.json",
      R"({"normalizer": {"type": "BertNormalizer", "lowercase": false, "strip_accents": true}})");
  CHECK(config(other)["strip_accents"] == true);
  CHECK(config(whole)["strip_accents"] == true);
  CHECK(config(whole)["tokenizer_class"] == "PreTrainedTokenizerFast");
  // The source's own vocabulary keeps the source's settings.
  CHECK(config(dir.write("from/vocab.txt", "[PAD]\n"))["strip_accents"] == false);
  CHECK(config(data.vocab_file)["pad_token"] == "[PAD]");
}

TEST_CASE("what is written is read back with the settings of the training") {
  struct Case {
    const char *normalizer, *model;
    bool whole;  // BertTokenizer has no setting for it
  };
  const Case cases[] = {{"", "", false},
                        {R"(, "clean_text": false)", "", true},
                        {"", R"(, "max_input_chars_per_word": 7)", true},
                        {R"(, "strip_accents": false)", "", false}};
  for (const Case& one : cases)
    for (const bool of_source : {false, true})
      for (const char* given : {"vocab.txt", "tokenizer.json"}) {
        CAPTURE(one.normalizer);
        CAPTURE(one.model);
        CAPTURE(of_source);
        CAPTURE(given);
        const TempDir dir;
        for (const char* folder : {"from", "own", "to"}) fs::create_directories(dir / folder);
        dir.write("from/config.json", "{}");
        const std::string folder = of_source ? "from/" : "own/";
        dir.write(folder + "vocab.txt", "[PAD]\n");
        dir.write(
            folder + "tokenizer.json",
            fmt::format(R"({{"normalizer": {{"type": "BertNormalizer", "lowercase": false{}}}, )"
                        R"("model": {{"type": "WordPiece"{}}}}})",
                        one.normalizer, one.model));
        DataConfig data;
        data.tokenizer = "BertWordPieceCase";
        data.vocab_file = dir / (folder + given);
        const SideFiles side = read_side_files(tiny_config(), data, dir / "from");
        for (const auto& [name, bytes] : side.files) dir.write("to/" + name, bytes);
        const WordSettings before = word_settings(dir / folder, false);
        const WordSettings after = word_settings(dir / "to", false);
        CHECK(after.rules.clean_text == before.rules.clean_text);
        CHECK(after.rules.strip_accents == before.rules.strip_accents);
        CHECK(after.rules.lower_case == before.rules.lower_case);
        CHECK(after.rules.space_cjk == before.rules.space_cjk);
        CHECK(after.longest_word == before.longest_word);
        const auto config = nlohmann::json::parse(side.files.at("tokenizer_config.json"));
        const bool whole = one.whole || given == std::string("tokenizer.json");
        CHECK(config["tokenizer_class"] == (whole ? "PreTrainedTokenizerFast" : "BertTokenizer"));
      }
}

TEST_CASE("the names of a classifier's classes are kept") {
  const TempDir dir;
  ModelConfig m;
  m.set_kind("bert"), m.task = Task::classification, m.classes = 3;
  SideFiles side;
  dir.write("config.json", model_config_json(m, DType::f32, side));
  CHECK(read_class_names(dir / "").empty());  // LABEL_0 and so on are no names
  side.classes = {"neg", "pos"};
  dir.write("config.json", model_config_json(m, DType::f32, side));
  const std::vector<std::string> names{"neg", "pos", "LABEL_2"};
  CHECK(read_class_names(dir / "") == names);
  side.config = dir.read("config.json");
  side.classes.clear();
  dir.write("config.json", model_config_json(m, DType::f32, side));
  CHECK(read_class_names(dir / "") == names);
  dir.write("config.json", R"({"architectures": ["BertForSequenceClassification"],
                               "id2label": {"0": "a", "1": "a"}})");
  CHECK(contains(error_of([&] { read_class_names(dir / ""); }), "two classes the name \"a\""));
}

TEST_CASE("a tied model whose lm_head is another matrix is refused") {
  const TempDir dir;
  Tiny tiny;
  tiny.config.tied_embeddings = false;
  ParameterTable untied;
  register_model(tiny.config, &untied);
  untied.allocate(*tiny.stream, DType::f32);
  untied.initialize(3);
  save_model_weights(dir / "model.safetensors", ParameterState(untied), *tiny.stream);
  tiny.config.tied_embeddings = true;
  const auto read = [&] {
    return error_of([&] {
      load_model_weights(dir / "model.safetensors", tiny.config, ParameterState(tiny.table),
                         *tiny.stream);
    });
  };
  CHECK(contains(read(), "'lm_head.weight' differs from"));
  CHECK(contains(read(), "set tie_word_embeddings to false"));
  const Tensor head = untied.get("lm_head.weight").value,
               embedding = untied.get("wte.weight").value;
  tiny.stream->copy(head.data, embedding.data, embedding.bytes());
  save_model_weights(dir / "model.safetensors", ParameterState(untied), *tiny.stream);
  CHECK(read().empty());
}
