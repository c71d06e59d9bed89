// The description of a model: its weights as one table. A row says what a weight is for, its shape,
// how tensor parallel processes divide it, what it starts from and how files call it. These are
// loops over the table:
//   registration                register_model() (stage.h)
//   the number of parameters    parameter_count()
//   FLOPs                       src/measure/flops.cc
//   names in files, LAMB's parts   WeightSpec::files and fused(), in src/checkpoint and src/optim
// BlockSpec (src/config/config.h) says what a block computes with them. Without LibTorch and CUDA,
// because src/plan is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/nn/weight_spec.h"

namespace tally::train {

// The part of a model that a stage holds: neighbouring layers with what is below the first and
// above the last layer of the model, and of each of them one shard.
struct ModelPart {
  int64_t first_layer = 0, layers = 0;
  bool first = true, last = true;  // has the embeddings; has the head
  int shard = 0, shards = 1;       // tensor parallelism
  bool sequence = false;           // the shards divide the tokens, too

  bool whole() const { return first && last && shards == 1; }
  // Whether a weight of the model is this part's. The last stage's copy of a tied table is not.
  bool has(const WeightSpec& weight, const ModelConfig& config) const;
};
ModelPart whole_model(const ModelConfig& config);

// The tokens that a GEMM with the matrix reads.
enum class Reads : uint8_t {
  none,    // it is a bias, a norm or a table that is only looked up
  all,     // all tokens of the micro batch
  masked,  // the tokens to be predicted
  firsts   // the first one of each sequence
};

// Names of a layer, by kind of model, without ".weight". Braces hold the last parts of the names of
// tensors that files have apart, and that are one weight here.
struct LayerNames {
  const char* gpt = nullptr;    // also our own name in a Llama
  const char* llama = nullptr;  // null: this kind has no such layer
  const char *bert = nullptr, *distilbert = nullptr;
};

struct WeightRow {
  Role role;
  bool bias = false;
  int64_t rows = 0, columns = 0;      // columns 0: a vector
  std::array<int64_t, 3> sections{};  // numbers of rows, which add up to all rows; 0: none
  Division division = Division::whole;
  Reads reads = Reads::none;
  double init_std = 0, init_value = 0;
  LayerNames names;
  LayerNames also = {};     // the same weight's names in other files
  bool vocabulary = false;  // its rows are those of the padded vocabulary
  bool head = false;        // `names` are whole: the model's prefix is not put before them
  bool of_next = false;     // it belongs to the block that follows
  bool of_heads = false;    // every process has all of it, and applies it to its own heads

  int64_t elements() const { return rows * (columns > 0 ? columns : 1); }
  // The elements of the part that one of `shards` processes has.
  int64_t elements(int shards) const {
    return division == Division::whole ? elements() : elements() / shards;
  }
};

// The rows of a model, in the order of its weights.
struct ModelTable {
  std::vector<WeightRow> below;  // the blocks
  std::vector<WeightRow> block;  // every one
  std::vector<WeightRow> above;
};
ModelTable table_of(const ModelConfig& config);

// Calls work(row, times) for each row of a part; `times`: how many of its layers have it.
template <typename Work>
void for_each_row(const ModelConfig& config, const ModelPart& part, const Work& work) {
  const ModelTable table = table_of(config);
  if (part.first)
    for (const WeightRow& row : table.below) work(row, int64_t{1});
  for (const WeightRow& row : table.block) work(row, part.layers);
  if (!part.last) return;
  for (const WeightRow& row : table.above) work(row, int64_t{1});
  // The last stage has a copy of the embedding that its head is tied to.
  if (!part.first && config.tied_embeddings) work(table.below.front(), int64_t{1});
}

// The weights of a part, in the order of registration.
std::vector<WeightSpec> weights_of(const ModelConfig& config, const ModelPart& part);
// The weights of the heads that a model of this kind may have, for whatever task.
std::vector<WeightSpec> heads_of(const ModelConfig& config);
// The beginning of names in the files of models with a head: "transformer.", "bert.".
std::string file_prefix(const ModelConfig& config);

// The parameters of the whole model, with the padding of the vocabulary.
int64_t parameter_count(const ModelConfig& config);
// Elements of a block's matrices, each of which takes part in one GEMM forward.
int64_t block_matrices(const ModelConfig& config);

}  // namespace tally::train
