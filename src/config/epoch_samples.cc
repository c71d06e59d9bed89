// The number of samples in a pass over the training data, for --epochs.
#include <memory>
#include <stdexcept>

#include "src/config/reader_options.h"
#include "src/config/resolve_parts.h"
#include "src/data/encoders/bert_shards.h"
#include "src/data/tokenizers/wordpiece.h"
#include "src/data/tokens/dataset.h"

namespace tally::train {
namespace {

int64_t count_blocks(const Config& c) {
  if (c.data.mock) fail("--epochs", "random tokens (--mock-data) have no end: give --train-iters");
  if (c.data.paths.size() > 1)
    fail("--epochs", "counts the passes over one dataset, and {} are blended: give --train-samples",
         c.data.paths.size());
  try {
    const auto dataset = std::make_shared<const IndexedDataset>(c.data.paths.front());
    return make_block_samples(dataset, c.data.training_split(), Split::train, c.sequence, c.seed)
        ->samples_per_epoch();
  } catch (const std::runtime_error& e) {
    fail("--epochs", "{}", e.what());
  }
}

// Windows of the questions that training takes.
int64_t count_windows(const Config& c) {
  if (c.data.vocab_file.empty())
    fail("--vocab-file", "is missing: the text is tokenized with the model's vocab.txt");
  const auto tokenizer =
      make_wordpiece_tokenizer(c.data.vocab_file, c.data.tokenizer == "BertWordPieceLowerCase");
  const SquadFile file = read_squad(c.data.paths.front(), true, c.data.squad_2);
  return static_cast<int64_t>(
      make_squad_features(file.examples, *tokenizer, squad_options(c), true).size());
}

int64_t count_shard_rows(const Config& c) {
  std::vector<std::string> files;
  for (const std::string& path : c.data.paths)
    for (const std::string& file : bert_shard_files(path, true)) files.push_back(file);
  BertShardOptions options;
  options.masking.vocabulary = c.model.vocabulary;
  return open_bert_shards(files, options)->samples_per_epoch();
}

int64_t count_encoder_samples(const Config& c) {
  if (c.data.mock) return c.data.mock_samples;
  try {
    if (c.model.task == Task::pretraining) return count_shard_rows(c);
    if (c.model.task == Task::question_answering) return count_windows(c);
    return static_cast<int64_t>(
        read_labelled_texts(c.data.paths.front(), labelled_text_options(c)).rows.size());
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& e) {
    fail(c.data.separate ? "--train-data-path" : "--data-path", "{}", e.what());
  }
}

}  // namespace

SquadOptions squad_options(const Config& c) {
  SquadOptions o;
  o.sequence = c.sequence;
  o.stride = c.data.document_stride;
  o.question = c.data.question_tokens;
  return o;
}

LabelledTextOptions labelled_text_options(const Config& c) {
  LabelledTextOptions o;
  o.text_column = c.data.text_column;
  o.pair_column = c.data.pair_column;
  o.label_column = c.data.label_column;
  return o;
}

int64_t count_epoch_samples(const Config& c) {
  return c.model.language_model() ? count_blocks(c) : count_encoder_samples(c);
}

}  // namespace tally::train
