// The samples of a run: a dataset's splits, or random tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/train/feed/samples.h"

namespace tally::train {

struct DataSources {
  Samples train;            // empty with --skip-train
  Samples validation;       // empty when the run does not evaluate
  Samples test;             // empty without --test-data-path
  std::string description;  // "corpus/corpus: 503 documents, 1528901 tokens"
  // The names of the classes that training has, in their order; empty where they are numbers.
  std::vector<std::string> classes;
  std::vector<std::string> notes;  // sentences to print: what was taken for granted, or cut
  // The data's content, independent of its paths: sizes, shares of a blend, and hashes of first
  // samples.
  std::string content, training_content;
};

// The token that ends a document for the run's tokenizer. Throws std::runtime_error where it is not
// known.
int32_t end_of_document(const Config& config);

// Opens and checks the data; allocates little. Throws std::runtime_error with one sentence that
// names the flag or the file. `model`: the folder of the model that the run starts from, whose
// classes may have names; empty: none.
DataSources open_data(const Config& config, const std::string& model = "");

// Wraps `source` and checks every token against the vocabulary: a token beyond it would read past
// the embedding table.
std::shared_ptr<const SampleSource> check_tokens(std::shared_ptr<const SampleSource> source,
                                                 int64_t sequence, int64_t vocabulary,
                                                 const std::string& name);

}  // namespace tally::train
