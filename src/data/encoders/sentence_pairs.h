// BERT's pairs of text for next sentence prediction (create_pretraining_data.py of
// google-research/bert).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/tokenizers/wordpiece.h"
#include "src/data/tokens/philox_draws.h"

namespace tally::train {

// Documents of tokenized sentences. Every document has a sentence and every sentence a token. Safe
// for many threads.
class SentenceSource {
 public:
  virtual ~SentenceSource() = default;
  virtual int64_t documents() const = 0;
  virtual int64_t sentences(int64_t document) const = 0;
  // Appends the tokens of a sentence.
  virtual void append(int64_t document, int64_t sentence, std::vector<int32_t>* out) const = 0;
};

struct SentencePairOptions {
  int64_t sequence = 128;                   // tokens of a sample, with [CLS] and two [SEP]
  double short_sequence_probability = 0.1;  // --short-seq-prob
  BertTokens tokens;
};

// Calls use(sample) for each pair that begins in `document`, in order, without masks; the sample
// may be changed. Sentences are joined until they fill the sequence (or, with
// short_sequence_probability, a random shorter length); a random part of them is A. B is the rest,
// or with probability 1/2, and where there is no rest, a random sentence of another document, and
// the rest comes again. A pair that is too long is cut at the beginning or end of the longer part.
void make_sentence_pairs(const SentenceSource& source, int64_t document,
                         const SentencePairOptions& options, PhiloxDraws* draws,
                         const std::function<void(EncoderSample&)>& use);

}  // namespace tally::train
