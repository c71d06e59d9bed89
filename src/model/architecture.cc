#include "src/model/architecture.h"

#include <array>
#include <cmath>
#include <stdexcept>

namespace tally::train {
namespace {

using Rows = std::vector<WeightRow>;

// The rows of a linear layer: its matrix and, where it has one, its bias.
void linear(WeightRow matrix, bool has_bias, Rows* rows) {
  WeightRow bias = matrix;
  bias.bias = true;
  bias.columns = 0;
  bias.reads = Reads::none;
  bias.init_std = 0;
  // The bias of a row-parallel layer is added once to the sum over the processes.
  if (matrix.division == Division::columns) bias.division = Division::whole;
  rows->push_back(std::move(matrix));
  if (has_bias) rows->push_back(std::move(bias));
}

// RMSNorm has no bias.
void norm(WeightRow row, NormKind kind, Rows* rows) {
  WeightRow bias = row;
  bias.bias = true;
  row.init_value = 1;
  rows->push_back(std::move(row));
  if (kind == NormKind::layer) rows->push_back(std::move(bias));
}

Rows rows_below(const ModelConfig& m) {
  const int64_t c = m.hidden, v = m.padded_vocabulary;
  const double std = m.init_std;
  const bool predicts = m.task == Task::pretraining;
  Rows rows;
  WeightRow words{
      .role = Role::token_table,
      .rows = v,
      .columns = c,
      .division = Division::rows,
      .reads = predicts                                  ? Reads::masked
               : m.language_model() && m.tied_embeddings ? Reads::all
                                                         : Reads::none,
      .init_std = std,
      .names = {"wte", "embed_tokens", "embeddings.word_embeddings", "embeddings.word_embeddings"},
      .vocabulary = true};
  if (m.tied_embeddings) words.also.gpt = words.also.llama = "lm_head";
  if (predicts) words.also.bert = "cls.predictions.decoder";
  if (predicts) words.also.distilbert = "vocab_projector";
  rows.push_back(std::move(words));
  if (m.positions == Positions::learned)
    rows.push_back({.role = Role::position_table,
                    .rows = m.max_positions,
                    .columns = c,
                    .init_std = std,
                    .names = {"wpe", nullptr, "embeddings.position_embeddings",
                              "embeddings.position_embeddings"}});
  if (m.token_types > 0)
    rows.push_back({.role = Role::type_table,
                    .rows = m.token_types,
                    .columns = c,
                    .init_std = std,
                    .names = {nullptr, nullptr, "embeddings.token_type_embeddings"}});
  if (m.block.norm_position == NormPosition::after)
    norm({.role = Role::in_norm,
          .rows = c,
          .names = {nullptr, nullptr, "embeddings.LayerNorm", "embeddings.LayerNorm"},
          .of_next = true},
         m.block.norm, &rows);
  return rows;
}

// GPT-2: what is added to the residual stream starts smaller by the root of the number of
// additions.
double output_std(const ModelConfig& m) {
  return m.block.norm_position == NormPosition::after
             ? m.init_std
             : m.init_std / std::sqrt(2.0 * static_cast<double>(m.layers));
}

Rows rows_of_block(const ModelConfig& m) {
  const BlockSpec& b = m.block;
  const int64_t c = m.hidden, f = m.ffn, q = m.attention_width(), kv = m.kv_width();
  Rows rows;
  if (b.norm_position == NormPosition::before)
    norm({.role = Role::in_norm, .rows = c, .names = {"ln_1", "input_layernorm"}}, b.norm, &rows);
  // Each process has its heads of Q, of K and of V.
  linear({.role = Role::qkv,
          .rows = m.qkv_width(),
          .columns = c,
          .sections = {q, kv, kv},
          .division = Division::rows,
          .reads = Reads::all,
          .init_std = m.init_std,
          .names = {"attn.c_attn", "self_attn.{q_proj,k_proj,v_proj}",
                    "attention.self.{query,key,value}", "attention.{q_lin,k_lin,v_lin}"}},
         b.biases || b.qkv_bias, &rows);
  if (b.qk_norm) {
    norm({.role = Role::q_norm,
          .rows = m.head_dim(),
          .names = {"attn.q_norm", "self_attn.q_norm"},
          .of_heads = true},
         b.norm, &rows);
    norm({.role = Role::k_norm,
          .rows = m.head_dim(),
          .names = {"attn.k_norm", "self_attn.k_norm"},
          .of_heads = true},
         b.norm, &rows);
  }
  linear(
      {.role = Role::projection,
       .rows = c,
       .columns = q,
       .division = Division::columns,
       .reads = Reads::all,
       .init_std = output_std(m),
       .names = {"attn.c_proj", "self_attn.o_proj", "attention.output.dense", "attention.out_lin"}},
      b.biases, &rows);
  norm({.role = Role::mid_norm,
        .rows = c,
        .names = {"ln_2", "post_attention_layernorm", "attention.output.LayerNorm",
                  "sa_layer_norm"}},
       b.norm, &rows);
  // Each process has its gates and ups.
  linear({.role = Role::fc,
          .rows = m.fc_width(),
          .columns = c,
          .sections = {f, b.gated() ? f : 0},
          .division = Division::rows,
          .reads = Reads::all,
          .init_std = m.init_std,
          .names = {"mlp.c_fc", "mlp.{gate_proj,up_proj}", "intermediate.dense", "ffn.lin1"}},
         b.biases, &rows);
  linear({.role = Role::mlp_projection,
          .rows = c,
          .columns = f,
          .division = Division::columns,
          .reads = Reads::all,
          .init_std = output_std(m),
          .names = {"mlp.c_proj", "mlp.down_proj", "output.dense", "ffn.lin2"}},
         b.biases, &rows);
  if (b.norm_position == NormPosition::after)
    norm({.role = Role::in_norm,
          .rows = c,
          .names = {nullptr, nullptr, "output.LayerNorm", "output_layer_norm"},
          .of_next = true},
         b.norm, &rows);
  return rows;
}

// A head's linear layer on the tokens that it reads.
void head(Role role, int64_t out, Reads reads, const LayerNames& names, const ModelConfig& m,
          Rows* rows) {
  linear({.role = role,
          .rows = out,
          .columns = m.hidden,
          .reads = reads,
          .init_std = m.init_std,
          .names = names,
          .head = true},
         true, rows);
}

void masked_language_model(const ModelConfig& m, Rows* rows) {
  head(Role::masked_dense, m.hidden, Reads::masked,
       {.bert = "cls.predictions.transform.dense", .distilbert = "vocab_transform"}, m, rows);
  norm({.role = Role::masked_norm,
        .rows = m.hidden,
        .names = {.bert = "cls.predictions.transform.LayerNorm", .distilbert = "vocab_layer_norm"},
        .head = true},
       m.block.norm, rows);
  rows->push_back({.role = Role::masked_decoder,
                   .bias = true,
                   .rows = m.padded_vocabulary,
                   .names = {.bert = "cls.predictions", .distilbert = "vocab_projector"},
                   .also = {.bert = "cls.predictions.decoder"},
                   .vocabulary = true,
                   .head = true});
}

Rows rows_above(const ModelConfig& m) {
  Rows rows;
  if (m.block.norm_position == NormPosition::before)
    norm({.role = Role::in_norm, .rows = m.hidden, .names = {"ln_f", "norm"}, .of_next = true},
         m.block.norm, &rows);
  // The pooler of BERT is a part of the model's body, not of a head.
  const LayerNames pooler{.bert = "bert.pooler.dense", .distilbert = "pre_classifier"};
  switch (m.task) {
    case Task::language_model:
      if (!m.tied_embeddings)
        rows.push_back({.role = Role::lm_head,
                        .rows = m.padded_vocabulary,
                        .columns = m.hidden,
                        .division = Division::rows,
                        .reads = Reads::all,
                        .init_std = m.init_std,
                        .names = {"lm_head", "lm_head"},
                        .vocabulary = true,
                        .head = true});
      break;
    case Task::pretraining:
      masked_language_model(m, &rows);
      if (!m.predicts_next_sentence()) break;
      head(Role::sequence_dense, m.hidden, Reads::firsts, pooler, m, &rows);
      head(Role::next_sentence, 2, Reads::firsts, {.bert = "cls.seq_relationship"}, m, &rows);
      break;
    case Task::classification:
      head(Role::sequence_dense, m.hidden, Reads::firsts, pooler, m, &rows);
      head(Role::classifier, m.classes, Reads::firsts,
           {.bert = "classifier", .distilbert = "classifier"}, m, &rows);
      break;
    case Task::question_answering:
      head(Role::answers, 2, Reads::all, {.bert = "qa_outputs", .distilbert = "qa_outputs"}, m,
           &rows);
      break;
  }
  return rows;
}

// The names of a model's weights in files of its kind.
struct Files {
  const char* kind;
  const char* prefix;
  const char *own_block, *block;  // before the names of a block's layers: ours, and in files
  const char* LayerNames::*own;
  const char* LayerNames::*column;
  bool transposed;  // a block's matrices: transformers' Conv1D
};
constexpr std::array<Files, 4> all_files{
    {{"gpt", "transformer.", "h.", "h.", &LayerNames::gpt, &LayerNames::gpt, true},
     {"llama", "model.", "h.", "layers.", &LayerNames::gpt, &LayerNames::llama, false},
     {"bert", "bert.", "encoder.layer.", "encoder.layer.", &LayerNames::bert, &LayerNames::bert,
      false},
     {"distilbert", "distilbert.", "transformer.layer.", "transformer.layer.",
      &LayerNames::distilbert, &LayerNames::distilbert, false}}};

const Files& files_of(const ModelConfig& config) {
  for (const Files& f : all_files)
    if (config.kind() == f.kind) return f;
  throw std::logic_error("there is no kind of model " + config.kind());
}

// "a.{x,y}" as "a.x" and "a.y".
std::vector<std::string> apart(const std::string& layer) {
  const size_t open = layer.find('{');
  if (open == std::string::npos) return {layer};
  std::vector<std::string> names;
  for (size_t at = open + 1; at < layer.size();) {
    const size_t end = layer.find_first_of(",}", at);
    names.push_back(layer.substr(0, open) + layer.substr(at, end - at));
    at = end + 1;
  }
  return names;
}

// "a.{x,y,z}" as "a.qkv".
std::string together(const std::string& layer) {
  const size_t open = layer.find('{');
  return open == std::string::npos ? layer : layer.substr(0, open) + "qkv";
}

std::string without(const std::string& prefix, const std::string& name) {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// LayerNorm's parameters in old files of encoders.
void add_old_name(FileTensor* tensor) {
  constexpr std::array<std::array<const char*, 2>, 2> olds{
      {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}}};
  for (const auto& [now, old] : olds)
    if (tensor->bare.ends_with(now))
      tensor->also.push_back(tensor->bare.substr(0, tensor->bare.size() - std::string(now).size()) +
                             old);
}

// `layer`: the block that the row is in; -1: none.
WeightSpec spec_of(const WeightRow& row, const ModelConfig& m, int64_t layer) {
  const Files& f = files_of(m);
  const char *own = row.names.*f.own, *column = row.names.*f.column;
  if (!own || !column)
    throw std::logic_error(std::string("the files of a ") + f.kind + " have no name for role " +
                           std::to_string(static_cast<int>(row.role)));
  const std::string end = row.bias ? ".bias" : ".weight";
  const auto block = [&](const char* prefix) {
    return layer < 0 ? std::string() : prefix + std::to_string(layer) + ".";
  };
  WeightSpec w;
  w.id = {row.role, layer + (row.of_next ? 1 : 0)};
  w.bias = row.bias;
  w.name = block(f.own_block) + without(f.prefix, together(own)) + end;
  w.shape = {row.rows};
  if (row.columns > 0) w.shape.push_back(row.columns);
  if (row.sections[1] > 0)
    for (const int64_t section : row.sections)
      if (section > 0) w.sections.push_back(section);
  w.division = row.division;
  if (w.matrix()) w.group = ParameterGroup::decayed;
  if (w.matrix()) w.block = layer;
  w.vocabulary = row.vocabulary;
  if (row.vocabulary) w.padding_rows = m.padded_vocabulary - m.vocabulary;
  w.init_std = row.init_std;
  w.init_value = row.init_value;
  w.transposed = f.transposed && w.block >= 0;
  for (const std::string& name : apart(column)) {
    FileTensor tensor;
    tensor.name = (row.head ? "" : f.prefix) + block(f.block) + name + end;
    tensor.bare = without(f.prefix, tensor.name);
    if (const char* other = row.also.*f.column) tensor.also.push_back(other + end);
    if (m.block.norm_position == NormPosition::after) add_old_name(&tensor);
    w.files.push_back(std::move(tensor));
  }
  return w;
}

}  // namespace

bool ModelPart::has(const WeightSpec& weight, const ModelConfig& config) const {
  const int64_t layer = weight.id.layer;
  if (layer >= first_layer && layer < first_layer + layers) return true;
  if (layer < 0) return weight.id.role <= Role::type_table ? first : last;
  return layer == config.layers && last;
}

ModelPart whole_model(const ModelConfig& config) {
  ModelPart part;
  part.layers = config.layers;
  return part;
}

ModelTable table_of(const ModelConfig& config) {
  return {rows_below(config), rows_of_block(config), rows_above(config)};
}

std::vector<WeightSpec> weights_of(const ModelConfig& config, const ModelPart& part) {
  const ModelTable table = table_of(config);
  std::vector<WeightSpec> weights;
  const auto add = [&](const WeightRow& row, int64_t layer) {
    WeightSpec w = spec_of(row, config, layer);
    w.copy = row.division == Division::whole && part.shard > 0;
    const bool seen_in_part = part.sequence || (row.of_heads && part.shards > 1);
    if (seen_in_part && row.division == Division::whole && !w.matrix())
      w.reduction = Reduction::shards;
    weights.push_back(std::move(w));
  };
  if (part.first) {
    for (const WeightRow& row : table.below) add(row, -1);
  } else if (part.last && config.tied_embeddings) {
    add(table.below.front(), -1);
    weights.back().copy = true;
  }
  if (part.first != part.last && config.tied_embeddings)
    weights.front().reduction = Reduction::ends;
  for (int64_t l = part.first_layer; l < part.first_layer + part.layers; ++l)
    for (const WeightRow& row : table.block) add(row, l);
  if (!part.last) return weights;
  for (const WeightRow& row : table.above) {
    add(row, -1);
    // The norm after the blocks is the one before a block that there is not.
    if (row.of_next) weights.back().id.layer = config.layers;
  }
  return weights;
}

std::vector<WeightSpec> heads_of(const ModelConfig& config) {
  std::vector<WeightSpec> heads;
  ModelConfig m = config;
  m.next_sentence = true;
  for (const Task task : {Task::pretraining, Task::classification, Task::question_answering}) {
    m.task = task;
    for (const WeightRow& row : rows_above(m))
      if (row.head) heads.push_back(spec_of(row, m, -1));
  }
  return heads;
}

std::string file_prefix(const ModelConfig& config) {
  return files_of(config).prefix;
}

int64_t parameter_count(const ModelConfig& config) {
  int64_t count = 0;
  for_each_row(config, whole_model(config),
               [&](const WeightRow& row, int64_t times) { count += times * row.elements(); });
  return count;
}

int64_t block_matrices(const ModelConfig& config) {
  int64_t elements = 0;
  for (const WeightRow& row : table_of(config).block)
    if (row.columns > 0) elements += row.elements();
  return elements;
}

}  // namespace tally::train
