// Encoder samples of any size without data, for measuring.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {

// The lengths of samples in tokens, [CLS] and [SEP] included. They are written "128" (all have as
// many), "16:128" (uniform in 16 ... 128) or "@FILE": a histogram, a line "LENGTH WEIGHT" for each
// length.
class LengthDistribution {
 public:
  // Throws std::runtime_error with one sentence; of a histogram's line with FILE:LINE:COLUMN.
  explicit LengthDistribution(const std::string& text);

  int64_t least() const { return lengths_.front(); }
  int64_t greatest() const { return lengths_.back(); }
  double mean() const;
  // The length at the share `uniform` in [0, 1) of the samples.
  int64_t at(double uniform) const;

 private:
  void read_histogram(const std::string& path);

  std::vector<int64_t> lengths_;  // ascending
  std::vector<double> sums_;      // sums of the weights up to each length; the last is 1
};

enum class SyntheticTask { pretraining, classification, question_answering };

struct SyntheticOptions {
  SyntheticTask task = SyntheticTask::pretraining;
  int64_t samples = 1024;  // an epoch's
  LengthDistribution lengths{"128"};
  int64_t vocabulary = 30522;
  BertTokens tokens{0, 100, 101, 102, 103};  // the published BERT models'
  int64_t classes = 2;                       // every class equally often, within one sample
  double masked_probability = 0.15;
  int64_t max_predictions = 20;
  uint64_t seed = 1234;
};

// Random tokens that are none of options.tokens. Pre-training: two parts of about equal length,
// both kinds of pairs equally often, and masks. Question answering: a quarter of the tokens are the
// question, and the answer is a random span of the rest. Samples of every epoch are those of the
// first. Throws std::invalid_argument where the options contradict each other.
std::unique_ptr<EncoderSource> make_synthetic_samples(const SyntheticOptions& options);

}  // namespace tally::train
