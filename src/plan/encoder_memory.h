// What the memory of BERT and DistilBERT has besides their blocks': parameters as
// src/model/encoder_parameters.cc registers them, and scratch as Encoder::plan_heads() plans it.
#pragma once

#include <functional>

#include "src/config/config.h"

namespace tally::train {

// Calls `add` for the number of elements of every parameter.
void for_each_encoder_parameter(const ModelConfig& model,
                                const std::function<void(int64_t elements)>& add);

// Bytes of the heads' scratch without the logits of pre-training, which share the memory of other
// tensors: masked tokens (all may be), first tokens, spans.
double encoder_head_bytes(const Config& config);

}  // namespace tally::train
