// The samples of a run: a dataset's splits, or random tokens.
#pragma once

#include <memory>
#include <string>

#include "src/config/config.h"
#include "src/train/samples.h"

namespace tally::train {

struct DataSources {
  Samples train;            // empty with --skip-train
  Samples validation;       // empty when the run does not evaluate
  Samples test;             // empty without --test-data-path
  std::string description;  // "corpus/corpus: 503 documents, 1528901 tokens"
  // Its content, independent of its path: sizes, and a hash of the first training sample.
  std::string content;
  std::string note;  // what the user should know about it; empty: nothing
};

// The token that ends a document for the run's tokenizer. Throws std::runtime_error where it is not
// known.
int32_t end_of_document(const Config& config);

// Opens and checks the data; allocates little. Throws std::runtime_error with one sentence that
// names the flag or the file.
DataSources open_data(const Config& config);

// Wraps `source` and checks every token against the vocabulary: a token beyond it would read past
// the embedding table.
std::shared_ptr<const SampleSource> check_tokens(std::shared_ptr<const SampleSource> source,
                                                 int64_t sequence, int64_t vocabulary,
                                                 const std::string& name);

}  // namespace tally::train
