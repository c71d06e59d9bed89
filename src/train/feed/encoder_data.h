// The samples of an encoder's run: BERT's pre-training shards, labelled texts, SQuAD, or random
// tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/encoders/squad.h"
#include "src/data/tokenizers/wordpiece.h"
#include "src/train/feed/data_sources.h"

namespace tally::train {

// open_data() of encoders. The training samples are shuffled anew in every epoch, the others keep
// their order.
DataSources open_encoder_data(const Config& config, const std::string& model);

// The data of `evaluate`: all samples of --data-path in their order.
struct EncoderExam {
  std::shared_ptr<const EncoderSource> source;
  std::string name;  // the file's
  // SQuAD: the way from logits back to answers.
  std::vector<SquadExample> examples;
  std::shared_ptr<const std::vector<SquadFeature>> features;  // sample n is feature n
  std::shared_ptr<const WordPieceTokenizer> tokenizer;
  std::vector<std::string> classes;  // see DataSources::classes
  std::vector<std::string> notes;    // see DataSources::notes
};
// Throws std::runtime_error with one sentence.
EncoderExam open_encoder_exam(const Config& config);

}  // namespace tally::train
