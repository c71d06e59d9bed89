// Parameters as Hugging Face's files hold them. Private to checkpoint/.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/nn/parameters.h"

namespace tally::train {

// "transformer.h.0.ln_1.bias"
std::string saved_name(const std::string& name);
inline constexpr const char* saved_prefix = "transformer.";

// This process's part of a parameter as elements of the stored tensor. `local` counts the elements
// of the part in the stored order: transposed where is_conv1d(). Without the padding rows of the
// vocabulary, which are the last of the part.
std::vector<ElementRun> stored_runs(const Parameter& parameter, const ModelConfig& config);

// to[columns, rows] = from[rows, columns]; elements of `element` bytes.
void transpose(const char* from, int64_t rows, int64_t columns, size_t element, char* to);

}  // namespace tally::train
