// Parameters as Hugging Face's files hold them. Private to checkpoint/.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/nn/parameters.h"

namespace tally::train {

// What names begin with in the files of models with a head: "transformer.h.0.ln_1.bias",
// "bert.embeddings.LayerNorm.bias". Heads' own names do not have it.
const char* saved_prefix(const ModelConfig& config);

// A tensor of a file that holds a parameter, or a part of it: encoders and Llama store Q, K and V
// apart, and Llama the MLP's gates and ups.
struct StoredPart {
  std::string name;            // with the prefix
  std::vector<int64_t> shape;  // transposed where is_conv1d(), without the vocabulary's padding
  // This process's part of it. `global` counts the tensor's elements, `local` those of the
  // process's part of the parameter in the stored order: transposed where is_conv1d(). Without the
  // padding rows of the vocabulary, which are the last of the part.
  std::vector<ElementRun> runs;

  std::string bare_name(const ModelConfig& config) const;  // without the prefix
};
std::vector<StoredPart> stored_parts(const Parameter& parameter, const ModelConfig& config);

// All names that files may give a stored tensor, ours first: with the prefix and without, those of the
// output layer where it is tied to the embedding, LayerNorm's gamma and beta of old files.
std::vector<std::string> all_names(const std::string& bare_name, const ModelConfig& config);
// Whether it is a parameter of one of transformers' heads on this encoder. `name`: without prefix.
bool is_of_head(const std::string& name, const ModelConfig& config);
// Whether files may hold this tensor although the model has no place for it (attention's masks of old
// files, Llama's rotary angles, another head), and may lack it: a new head is made on an encoder that
// was trained for something else. `name`: without prefix.
bool is_ignored(const std::string& name, const ModelConfig& config);

// to[columns, rows] = from[rows, columns]; elements of `element` bytes.
void transpose(const char* from, int64_t rows, int64_t columns, size_t element, char* to);

}  // namespace tally::train
