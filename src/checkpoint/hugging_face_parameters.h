// Parameters as Hugging Face's files hold them. Private to checkpoint/.
#pragma once

#include <string>
#include <vector>

#include "src/model/architecture.h"
#include "src/nn/parameters.h"

namespace tally::train {

// A tensor of a file that holds a parameter, or a part of it (WeightSpec::files).
struct StoredPart {
  FileTensor tensor;
  std::vector<int64_t> shape;  // the file's, without the vocabulary's padding
  // This process's part of it. `global` counts the tensor's elements, `local` those of the
  // process's part of the parameter in the stored order. Without the padding rows of the
  // vocabulary, which are the last of the part.
  std::vector<ElementRun> runs;
};
std::vector<StoredPart> stored_parts(const Parameter& parameter);

// All names that files may give a tensor, ours first: with the prefix and without, those of the
// output layer where it is tied to the embedding, LayerNorm's gamma and beta of old files.
std::vector<std::string> all_names(const FileTensor& tensor, const ModelConfig& config);
// A name of a file without the prefix.
std::string bare_name(const std::string& name, const ModelConfig& config);
// Whether files may hold this tensor although the model has no place for it (attention's masks of
// old files, Llama's rotary angles, another head), and may lack it: a new head is made on an
// encoder that was trained for something else. `name`: without prefix.
bool is_ignored(const std::string& name, const ModelConfig& config);

// to[columns, rows] = from[rows, columns]; elements of `element` bytes.
void transpose(const char* from, int64_t rows, int64_t columns, size_t element, char* to);

}  // namespace tally::train
