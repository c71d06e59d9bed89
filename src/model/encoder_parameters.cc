// The parameters of BERT and DistilBERT.
#include "src/model/encoder_names.h"
#include "src/model/stage.h"

namespace tally::train {
namespace {

EncoderNames bert() {
  EncoderNames n;
  n.words = "embeddings.word_embeddings.weight";
  n.positions = "embeddings.position_embeddings.weight";
  n.token_types = "embeddings.token_type_embeddings.weight";
  n.embedding_norm = "embeddings.LayerNorm";
  n.masked_lm = {"cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
                 "cls.predictions.bias"};
  n.next_sentence = "cls.seq_relationship";
  n.sequence_dense = "pooler.dense";
  n.classifier = "classifier";
  n.answers = "qa_outputs";
  n.layer_prefix = "encoder.layer.";
  n.qkv = ".attention.self.qkv";
  n.projection = ".attention.output.dense";
  n.mid_norm = ".attention.output.LayerNorm";
  n.fc = ".intermediate.dense";
  n.mlp_projection = ".output.dense";
  n.out_norm = ".output.LayerNorm";
  return n;
}

EncoderNames distilbert() {
  EncoderNames n;
  n.words = "embeddings.word_embeddings.weight";
  n.positions = "embeddings.position_embeddings.weight";
  n.embedding_norm = "embeddings.LayerNorm";
  n.masked_lm = {"vocab_transform", "vocab_layer_norm", "vocab_projector.bias"};
  n.sequence_dense = "pre_classifier";
  n.classifier = "classifier";
  n.answers = "qa_outputs";
  n.layer_prefix = "transformer.layer.";
  n.qkv = ".attention.qkv";
  n.projection = ".attention.out_lin";
  n.mid_norm = ".sa_layer_norm";
  n.fc = ".ffn.lin1";
  n.mlp_projection = ".ffn.lin2";
  n.out_norm = ".output_layer_norm";
  return n;
}

// Adds parameters with the model's initial values.
class EncoderRegistration {
 public:
  EncoderRegistration(double std, ParameterTable* table) : std_(std), table_(*table) {}

  // A matrix; `block` and `padding_rows`: see Parameter.
  void matrix(const std::string& name, int64_t rows, int64_t columns, int64_t block = -1,
              int64_t padding_rows = 0) const {
    Parameter p = make_matrix(name, rows, columns, block);
    p.padding_rows = padding_rows;
    table_.add(std::move(p));
  }
  void vector(const std::string& name, int64_t n, double value = 0) const {
    table_.add(make_vector(name, n, value));
  }
  void linear(const std::string& name, int64_t rows, int64_t columns, int64_t block = -1) const {
    matrix(name + ".weight", rows, columns, block);
    vector(name + ".bias", rows);
  }
  // Q, K and V as one linear layer.
  void fused_linear(const std::string& name, int64_t width, int64_t block) const {
    for (Parameter p : {make_matrix(name + ".weight", 3 * width, width, block),
                        make_vector(name + ".bias", 3 * width, 0)}) {
      p.fused = {width, width, width};
      table_.add(std::move(p));
    }
  }
  void norm(const std::string& name, int64_t n) const {
    vector(name + ".weight", n, 1);
    vector(name + ".bias", n, 0);
  }

 private:
  Parameter make_matrix(const std::string& name, int64_t rows, int64_t columns,
                        int64_t block) const {
    Parameter p;
    p.name = name;
    p.shape = {rows, columns};
    p.group = ParameterGroup::decayed;
    p.init_std = std_;
    p.block = block;
    return p;
  }
  static Parameter make_vector(const std::string& name, int64_t n, double value) {
    Parameter p;
    p.name = name;
    p.shape = {n};
    p.init_value = value;
    return p;
  }

  double std_;
  ParameterTable& table_;
};

void register_head(const ModelConfig& config, const EncoderNames& names,
                   const EncoderRegistration& add) {
  const int64_t c = config.hidden;
  switch (config.task) {
    case Task::language_model:
      return;
    case Task::pretraining:
      add.linear(names.masked_lm.dense, c, c);
      add.norm(names.masked_lm.norm, c);
      add.vector(names.masked_lm.decoder_bias, config.padded_vocabulary);
      if (!config.predicts_next_sentence()) return;
      add.linear(names.sequence_dense, c, c);
      add.linear(names.next_sentence, 2, c);
      return;
    case Task::classification:
      add.linear(names.sequence_dense, c, c);
      add.linear(names.classifier, config.classes, c);
      return;
    case Task::question_answering:
      add.linear(names.answers, 2, c);
      return;
  }
}

}  // namespace

BlockNames EncoderNames::block(int64_t layer) const {
  const std::string h = layer_prefix + std::to_string(layer);
  const std::string before =
      layer > 0 ? layer_prefix + std::to_string(layer - 1) + out_norm : embedding_norm;
  return {before, h + qkv, h + projection, h + mid_norm, h + fc, h + mlp_projection};
}

const EncoderNames& encoder_names(const ModelConfig& config) {
  static const EncoderNames of_bert = bert(), of_distilbert = distilbert();
  return config.kind == "bert" ? of_bert : of_distilbert;
}

void register_encoder(const ModelConfig& config, ParameterTable* table) {
  const EncoderRegistration add(config.init_std, table);
  const EncoderNames& names = encoder_names(config);
  const int64_t c = config.hidden, f = config.ffn;
  add.matrix(names.words, config.padded_vocabulary, c, -1,
             config.padded_vocabulary - config.vocabulary);
  add.matrix(names.positions, config.max_positions, c);
  if (!names.token_types.empty()) add.matrix(names.token_types, config.token_types, c);
  add.norm(names.embedding_norm, c);
  for (int64_t l = 0; l < config.layers; ++l) {
    const BlockNames block = names.block(l);
    add.fused_linear(block.qkv, c, l);
    add.linear(block.projection, c, c, l);
    add.norm(block.mid_norm, c);
    add.linear(block.fc, f, c, l);
    add.linear(block.mlp_projection, c, f, l);
    add.norm(names.last_norm(l + 1), c);
  }
  register_head(config, names, add);
}

}  // namespace tally::train
