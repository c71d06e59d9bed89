// Names of the original BERT's variables in TensorFlow, and Hugging Face's for the same tensors.
#pragma once

#include <string>

namespace tally::train {

// Whether a variable is a weight of BERT or of its heads, rather than the optimizer's or the step.
bool is_bert_variable(const std::string& name);

struct BertTensorName {
  std::string name;         // empty: no such tensor is known
  bool transposed = false;  // a kernel [in, out], where Hugging Face has [out, in]
};
BertTensorName bert_tensor_name(const std::string& variable);

// Old names of LayerNorm, "gamma" and "beta", replaced by "weight" and "bias".
std::string with_new_norm_names(const std::string& name);

}  // namespace tally::train
