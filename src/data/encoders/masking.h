// The masked language model's input (Devlin et al. 2018, section 3.1; create_pretraining_data.py of
// google-research/bert).
#pragma once

#include <cstdint>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/tokenizers/wordpiece.h"
#include "src/data/tokens/philox_draws.h"

namespace tally::train {

struct MaskingOptions {
  double probability = 0.15;     // --masked-lm-prob
  int64_t max_predictions = 20;  // --max-predictions-per-seq
  int64_t vocabulary = 0;        // random tokens are drawn from all of it
  BertTokens tokens;
};

// Chooses min(max_predictions, max(1, round(probability * length))) tokens of sample->ids, which
// has no masks yet, that are not [CLS] or [SEP], all equally likely. Each becomes [MASK] with
// probability 0.8, a random token with 0.1, and stays with 0.1. Fills masked_positions and
// masked_labels.
void mask_tokens(const MaskingOptions& options, PhiloxDraws* draws, EncoderSample* sample);

// Puts the tokens that masks replaced back, and empties masked_positions and masked_labels.
void unmask_tokens(EncoderSample* sample);

}  // namespace tally::train
