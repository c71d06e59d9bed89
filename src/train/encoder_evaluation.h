// The loss of an encoder on all samples of its data, and what its answers are worth.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"
#include "src/device/stream.h"
#include "src/train/encoder_data.h"

namespace tally::train {

struct EncoderEvaluation {
  // The mean over the samples; of pre-training, over the masked tokens plus that over the pairs of
  // sentences. Of SQuAD there is none,
  // since questions have several right answers.
  double loss = 0;
  int64_t samples = 0, tokens = 0;
  double seconds = 0;
  // By name: accuracy (a share); exact_match and f1 (percent) with those of the questions that have
  // an answer and of those that have none.
  std::vector<std::pair<std::string, double>> metrics;
};

// Takes the weights of config.model_dir, which has all of the task. Throws std::runtime_error and OutOfMemory.
EncoderEvaluation evaluate_encoder(const Config& config, const EncoderExam& exam, Stream& stream);

}  // namespace tally::train
