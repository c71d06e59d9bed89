// Parameters of the encoders by name: Hugging Face's names without the prefix "bert." or
// "distilbert.". Q, K and V are one parameter here.
#pragma once

#include <string>

#include "src/config/config.h"
#include "src/nn/block.h"
#include "src/nn/masked_lm_head.h"

namespace tally::train {

struct EncoderNames {
  std::string words, positions, token_types;  // tables; token_types: empty where there are none
  std::string embedding_norm;
  MaskedLmNames masked_lm;
  std::string next_sentence;               // empty where there is none
  std::string sequence_dense, classifier;  // of classification (BERT's dense layer: the pooler)
  std::string answers;

  // A block's names. Its in_norm is the last norm of the block before it, or of the embeddings.
  BlockNames block(int64_t layer) const;
  // The norm after the last block.
  std::string last_norm(int64_t layers) const { return block(layers).in_norm; }

  std::string layer_prefix, qkv, projection, mid_norm, fc, mlp_projection, out_norm;
};

// Of config.kind: bert or distilbert.
const EncoderNames& encoder_names(const ModelConfig& config);

}  // namespace tally::train
