// The table of a model's weights: what follows from it agrees, for every kind of model.
#include "src/model/architecture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace tally::train;

namespace {

ModelConfig tiny(const std::string& kind, Task task = Task::language_model) {
  ModelConfig m;
  m.set_kind(kind);
  m.task = task;
  m.layers = 4, m.hidden = 24, m.heads = 4, m.ffn = 40;
  m.max_positions = 16, m.vocabulary = 45, m.padded_vocabulary = 48;
  if (kind != "llama") return m;
  m.positions = Positions::rotary;
  m.query_groups = 2;
  m.kv_channels = 8;
  m.tied_embeddings = false;
  return m;
}

std::vector<ModelConfig> all_models() {
  std::vector<ModelConfig> models{tiny("gpt"), tiny("llama")};
  for (const char* kind : {"bert", "distilbert"})
    for (const Task task : {Task::pretraining, Task::classification, Task::question_answering})
      models.push_back(tiny(kind, task));
  return models;
}

int64_t elements_of(const WeightSpec& w) {
  int64_t n = 1;
  for (const int64_t length : w.shape) n *= length;
  return n;
}

const WeightSpec& find(const std::vector<WeightSpec>& weights, const std::string& name) {
  const auto w = std::find_if(weights.begin(), weights.end(),
                              [&](const WeightSpec& each) { return each.name == name; });
  REQUIRE_MESSAGE(w != weights.end(), name);
  return *w;
}

std::vector<std::string> files_of(const WeightSpec& w) {
  std::vector<std::string> names;
  for (const FileTensor& tensor : w.files) names.push_back(tensor.name);
  return names;
}

}  // namespace

TEST_CASE("counts are those of the list of weights, whose names and places are different") {
  for (const ModelConfig& m : all_models()) {
    CAPTURE(m.kind());
    CAPTURE(static_cast<int>(m.task));
    int64_t count = 0, matrices = 0;
    std::set<std::string> names, tensors;
    std::set<std::tuple<Role, int64_t, bool>> places;
    for (const WeightSpec& w : weights_of(m, whole_model(m))) {
      CAPTURE(w.name);
      count += elements_of(w);
      if (w.block == 0) matrices += elements_of(w);
      CHECK(names.insert(w.name).second);
      CHECK(places.insert({w.id.role, w.id.layer, w.bias}).second);
      for (const FileTensor& tensor : w.files) CHECK(tensors.insert(tensor.name).second);
      CHECK((w.files.size() == 1 || w.files.size() == w.sections.size()));
      int64_t rows = 0;
      for (const int64_t section : w.sections) rows += section;
      CHECK((w.sections.empty() || rows == w.shape[0]));
    }
    CHECK(count == parameter_count(m));
    CHECK(matrices == block_matrices(m));
  }
}

TEST_CASE("the parts of a pipeline have every weight once, and the tied table twice") {
  for (const char* kind : {"gpt", "llama"}) {
    const ModelConfig m = tiny(kind);
    std::map<std::string, int> times;
    for (int64_t stage = 0; stage < 2; ++stage) {
      ModelPart part;
      part.first_layer = 2 * stage;
      part.layers = 2;
      part.first = stage == 0;
      part.last = stage == 1;
      int64_t elements = 0;
      for_each_row(m, part,
                   [&](const WeightRow& row, int64_t n) { elements += n * row.elements(); });
      for (const WeightSpec& w : weights_of(m, part)) {
        if (!w.copy) ++times[w.name];
        elements -= elements_of(w);
        CHECK((w.copy || part.has(w, m)));
        CHECK((w.reduction == Reduction::ends) == (w.name == "wte.weight" && m.tied_embeddings));
      }
      CHECK(elements == 0);
    }
    for (const WeightSpec& w : weights_of(m, whole_model(m))) CHECK(times[w.name] == 1);
  }
}

TEST_CASE("under sequence parallelism the shards add up what all of them have whole") {
  ModelPart part = whole_model(tiny("gpt"));
  part.shards = 2;
  for (const bool sequence : {false, true}) {
    part.sequence = sequence;
    for (const WeightSpec& w : weights_of(tiny("gpt"), part)) {
      CAPTURE(w.name);
      const bool whole_vector =
          w.name.find("ln_") != std::string::npos || w.name.ends_with("c_proj.bias");
      CHECK((w.reduction == Reduction::shards) == (sequence && whole_vector));
    }
  }
}

TEST_CASE("files have the names of transformers") {
  const auto weights = [](const ModelConfig& m) { return weights_of(m, whole_model(m)); };
  const auto gpt = weights(tiny("gpt")), llama = weights(tiny("llama")),
             bert = weights(tiny("bert", Task::pretraining)),
             distilbert = weights(tiny("distilbert", Task::classification));
  using Names = std::vector<std::string>;
  CHECK(files_of(find(gpt, "h.1.attn.c_attn.bias")) == Names{"transformer.h.1.attn.c_attn.bias"});
  CHECK(find(gpt, "wte.weight").files[0].also == Names{"lm_head.weight"});
  CHECK(files_of(find(llama, "h.3.mlp.c_fc.weight")) ==
        Names{"model.layers.3.mlp.gate_proj.weight", "model.layers.3.mlp.up_proj.weight"});
  CHECK(files_of(find(llama, "ln_f.weight")) == Names{"model.norm.weight"});
  CHECK(files_of(find(llama, "lm_head.weight")) == Names{"lm_head.weight"});
  CHECK(files_of(find(bert, "encoder.layer.0.attention.self.qkv.bias")) ==
        Names{"bert.encoder.layer.0.attention.self.query.bias",
              "bert.encoder.layer.0.attention.self.key.bias",
              "bert.encoder.layer.0.attention.self.value.bias"});
  const FileTensor& norm = find(bert, "embeddings.LayerNorm.weight").files[0];
  CHECK((norm.name == "bert.embeddings.LayerNorm.weight" &&
         norm.bare == "embeddings.LayerNorm.weight" &&
         norm.also == Names{"embeddings.LayerNorm.gamma"}));
  CHECK(files_of(find(bert, "pooler.dense.weight")) == Names{"bert.pooler.dense.weight"});
  CHECK(files_of(find(bert, "cls.predictions.bias")) == Names{"cls.predictions.bias"});
  CHECK(files_of(find(distilbert, "transformer.layer.2.attention.qkv.weight"))[2] ==
        "distilbert.transformer.layer.2.attention.v_lin.weight");
  CHECK(files_of(find(distilbert, "pre_classifier.weight")) == Names{"pre_classifier.weight"});
}
