// The samples of a run: a dataset's splits, or random tokens.
#pragma once

#include <memory>
#include <string>

#include "src/config/config.h"
#include "src/data/dataset.h"

namespace tally::train {

struct DataSources {
  std::shared_ptr<const SampleSource> train;
  std::shared_ptr<const SampleSource> validation;  // null when the run does not evaluate
  std::string description;                         // "corpus/corpus: 503 documents, 1528901 tokens"
  // What it holds, whatever its path: sizes, and a hash of the first training sample.
  std::string content;
};

// Opens and checks; allocates nothing of note. Throws std::runtime_error with one sentence that
// names the flag or the file.
DataSources open_data(const Config& config);

// `source` with every token checked against the vocabulary: a token beyond it would read past the
// embedding.
std::shared_ptr<const SampleSource> check_tokens(std::shared_ptr<const SampleSource> source,
                                                 int64_t sequence, int64_t vocabulary,
                                                 const std::string& name);

}  // namespace tally::train
