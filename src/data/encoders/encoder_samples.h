// Samples for encoders: BERT's pre-training, classification, extractive question answering.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tally::train {

// One sample. Fields that a task does not have are empty or -1.
struct EncoderSample {
  std::vector<int32_t> ids;          // [length]: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]
  std::vector<int32_t> token_types;  // [length]: 0 until the first [SEP], then 1
  // Pre-training: the positions in `ids` whose tokens are to be predicted, ascending, and these
  // tokens.
  std::vector<int32_t> masked_positions, masked_labels;
  int32_t next_sentence =
      -1;              // pre-training: 0 where B follows A in the text, 1 where it is random
  int32_t label = -1;  // classification: the number of the class
  int32_t start = -1, end = -1;  // answers: first and last token, both 0 ([CLS]) for "no answer"

  int64_t length() const { return static_cast<int64_t>(ids.size()); }
};

// Gives sample number n. Safe for many threads.
class EncoderSource {
 public:
  virtual ~EncoderSource() = default;
  virtual int64_t samples_per_epoch() const = 0;
  // The most tokens that a sample has, and the most that are to be predicted in one.
  virtual int64_t sequence() const = 0;
  virtual int64_t max_predictions() const { return 0; }
  // Replaces *out, whose memory is used again. `index` counts from 0 and may pass any number of
  // epochs. The result depends on the source and `index` alone. Throws std::runtime_error with one
  // sentence where the data cannot be read.
  virtual void sample(int64_t index, EncoderSample* out) const = 0;
};

// Samples as rows of equal length, in host memory, row major.
struct EncoderBatch {
  int64_t rows = 0, sequence = 0;
  std::vector<int32_t> ids;                   // [rows, sequence], padded with `pad`
  std::vector<int32_t> token_types;           // [rows, sequence], padded with 0
  std::vector<int32_t> lengths;               // [rows]: real tokens
  std::vector<int32_t> masked_positions;      // [masked]: row * sequence + position
  std::vector<int32_t> masked_labels;         // [masked]
  std::vector<int32_t> next_sentence, label;  // [rows]
  std::vector<int32_t> start, end;            // [rows]
};

// Puts samples first ... first + rows - 1 of a source into *batch. `sequence`: the length of rows;
// 0: that of the longest sample, rounded up to a multiple of 8. Throws std::runtime_error with one
// sentence where a sample is longer.
void fill_batch(const EncoderSource& source, int64_t first, int64_t rows, int64_t sequence,
                int32_t pad, EncoderBatch* batch);

}  // namespace tally::train
