// What the memory of BERT and DistilBERT has besides their blocks': scratch as Encoder::plan_heads()
// plans it.
#pragma once

#include "src/config/config.h"

namespace tally::train {

// Bytes of the heads' scratch without the logits of pre-training, which share the memory of other
// tensors: masked tokens (all may be), first tokens, spans.
double encoder_head_bytes(const Config& config);

}  // namespace tally::train
