// The samples of an encoder's run: BERT's pre-training shards, labelled texts, SQuAD, or random
// tokens.
#pragma once

#include "src/train/data_sources.h"

namespace tally::train {

// As open_data(). The training samples are shuffled anew in every epoch, the others keep their
// order.
DataSources open_encoder_data(const Config& config);

}  // namespace tally::train
