// The description of a weight of a model, without its numbers. src/model/architecture.h makes the
// list of a model's weights; a process's Parameter (parameters.h) is one of them with its offset in
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tally::train {

// The purpose of a weight. Layers find their weights by it.
enum class Role : uint8_t {
  token_table,
  position_table,
  type_table,  // rows are token types
  // Weights of a block; in_norm of the block that follows the last one is the norm after the
  // blocks.
  in_norm,
  qkv,
  q_norm,  // each head's norm
  k_norm,
  projection,  // attention's
  mid_norm,
  fc,
  mlp_projection,
  // Weights of heads.
  lm_head,
  masked_dense,
  masked_norm,
  masked_decoder,  // its bias; the matrix is the token table
  sequence_dense,
  next_sentence,
  classifier,
  answers
};

// A layer's weights: `layer` is the block's number, or -1 outside of the blocks.
struct WeightId {
  Role role;
  int64_t layer = -1;
  bool operator==(const WeightId&) const = default;
};

// The division of a weight [out,in] among tensor parallel processes.
enum class Division : uint8_t {
  whole,   // each has all of it
  rows,    // a column-parallel layer: in equal shares of every section
  columns  // a row-parallel layer
};

// The optimizer's treatment of a weight.
enum class ParameterGroup : uint8_t {
  decayed,   // matrices: with weight decay
  undecayed  // biases and norms: without
};

// The ranks that add up a weight's gradient.
enum class Reduction : uint8_t {
  replicas,  // the ranks that have the same part of it
  // The tensor parallel processes add first, because each has seen a part of the tokens: norms and
  // biases that all of them have, under sequence parallelism.
  shards,
  ends  // after them the first and the last stage of the pipeline, which both have the token table
};
inline constexpr size_t reductions = 3;

// A tensor of Hugging Face's files.
struct FileTensor {
  std::string name;  // has the model's prefix, which heads lack: "transformer.wte.weight"
  std::string bare;  // without it
  std::vector<std::string> also;  // bare names of the same weight in other files
};

struct WeightSpec {
  WeightId id{Role::token_table};
  bool bias = false;
  // Ours: GPT-2's and the encoders' of Hugging Face, without prefix: "h.0.attn.c_attn.weight". It
  // keys the random numbers that the weight starts from, and the optimizer's state in checkpoints.
  std::string name;
  std::vector<int64_t> shape;  // the whole model's: [out,in], [n]
  // Rows that belong together, one section after the other: Q, K and V, gates and ups. Empty: one.
  std::vector<int64_t> sections;
  Division division = Division::whole;
  ParameterGroup group = ParameterGroup::undecayed;
  Reduction reduction = Reduction::replicas;
  // The block whose matrix it is, whose gradient is computed by one GEMM in each backward pass; -1:
  // not such a matrix.
  int64_t block = -1;
  bool vocabulary = false;   // it has a row for each token
  int64_t padding_rows = 0;  // rows at the end that no token has
  double init_std = 0;       // normal(0, std); 0: all are init_value
  double init_value = 0;
  // One, or one for each section, each of which is then a weight of its own to LAMB.
  std::vector<FileTensor> files;
  bool transposed = false;  // files have [in,out]
  // Another process of the same replica has the same part (a norm's weight under tensor
  // parallelism, the tied embedding of the last stage): it counts there, in the norm of the
  // gradient and in files.
  bool copy = false;

  bool matrix() const { return shape.size() > 1; }
  // The sections that files have as tensors of their own; empty: one tensor.
  std::vector<int64_t> fused() const {
    return files.size() > 1 ? sections : std::vector<int64_t>();
  }
};

}  // namespace tally::train
