// A text as sentences: Megatron's indexed dataset whose sequences are sentences.
#pragma once

#include <memory>

#include "src/data/commands/bert_prepare.h"
#include "src/data/encoders/sentence_pairs.h"
#include "src/data/tokens/dataset.h"

namespace tally::train {

// Tokenizes the options' inputs and writes PREFIX.bin and PREFIX.idx, a sequence a sentence. Counts
// what it reads in *summary.
void write_sentences(const WordPieceTokenizer& tokenizer, const BertPrepareOptions& options,
                     const std::string& prefix, BertPrepareSummary* summary);

class DatasetSentences final : public SentenceSource {
 public:
  explicit DatasetSentences(std::shared_ptr<const IndexedDataset> dataset)
      : dataset_(std::move(dataset)) {}
  int64_t documents() const override { return dataset_->documents(); }
  int64_t sentences(int64_t document) const override {
    return dataset_->document_begin(document + 1) - dataset_->document_begin(document);
  }
  void append(int64_t document, int64_t sentence, std::vector<int32_t>* out) const override;

 private:
  std::shared_ptr<const IndexedDataset> dataset_;
};

}  // namespace tally::train
