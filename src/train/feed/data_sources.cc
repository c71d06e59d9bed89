#include "src/train/feed/data_sources.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "src/data/tokenizers/tokenizer.h"
#include "src/data/tokens/documents.h"
#include "src/data/tokens/split.h"
#include "src/train/feed/encoder_data.h"

namespace tally::train {
namespace {

class CheckedSamples final : public SampleSource {
 public:
  CheckedSamples(std::shared_ptr<const SampleSource> source, int64_t sequence, int64_t vocabulary,
                 std::string name)
      : source_(std::move(source)),
        tokens_(sequence + 1),
        vocabulary_(vocabulary),
        name_(std::move(name)) {}
  int64_t samples_per_epoch() const override { return source_->samples_per_epoch(); }
  void sample(int64_t index, int32_t* out) const override {
    source_->sample(index, out);
    for (int64_t i = 0; i < tokens_; ++i) {
      if (out[i] >= 0 && out[i] < vocabulary_) continue;
      throw std::runtime_error(
          fmt::format("{}: sample {} holds token {}, and the vocabulary has {} tokens: give the "
                      "--tokenizer-type that the dataset was made with, or --vocab-size",
                      name_, index, out[i], vocabulary_));
    }
  }

 private:
  std::shared_ptr<const SampleSource> source_;
  int64_t tokens_, vocabulary_;
  std::string name_;
};

// The weights of --split to use for a split of each dataset.
std::string split_weights(const Config& c, Split split) {
  if (!c.data.separate) return c.data.split;
  return split == Split::train ? "1" : split == Split::validation ? "0,1" : "0,0,1";
}

const Blend& blend_of(const Config& c, Split split) {
  if (!c.data.separate || split == Split::train) return c.data;
  return split == Split::validation ? c.data.validation : c.data.test;
}

// Refuses a sample that is longer than the whole split, which would repeat it. A benchmark's user
// hardly wants that.
void check_length(const Config& c, const IndexedDataset& dataset, const std::string& name) {
  const Range range = split_documents(c.data.training_split(),
                                      dataset.sequences())[static_cast<size_t>(Split::train)];
  int64_t tokens = 0;
  for (int64_t i = range.begin; i < range.end && tokens <= c.sequence; ++i)
    tokens += dataset.length(i);
  if (tokens > c.sequence) return;
  if (c.data.separate)
    throw std::runtime_error(
        fmt::format("--train-data-path {}: has {} tokens, and one sample of --seq-length {} needs "
                    "{}: lower --seq-length or prepare more text",
                    name, tokens, c.sequence, c.sequence + 1));
  throw std::runtime_error(
      fmt::format("{}: --split {} leaves {} tokens for training, and one sample of --seq-length {} "
                  "needs {}: lower --seq-length, change --split or prepare more text",
                  name, c.data.split, tokens, c.sequence, c.sequence + 1));
}

// Samples are shuffled: these are from all of the dataset, and training reads them anyway.
uint64_t hash_of_first_samples(const SampleSource& source, int64_t sequence) {
  std::vector<int32_t> sample(static_cast<size_t>(sequence) + 1);
  uint64_t hash = 0;
  for (int64_t k = 0; k < std::min<int64_t>(source.samples_per_epoch(), 16); ++k) {
    source.sample(k, sample.data());
    hash = XXH3_64bits_withSeed(sample.data(), sample.size() * sizeof(int32_t), hash);
  }
  return hash;
}

std::shared_ptr<const SampleSource> open_dataset(
    const Config& c, const std::shared_ptr<const IndexedDataset>& dataset, Split split,
    const std::string& name) {
  const std::string weights = split_weights(c, split);
  std::shared_ptr<const SampleSource> samples =
      c.epochs > 0 ? make_block_samples(dataset, weights, split, c.sequence, c.seed)
                   : make_gpt_samples(dataset, weights, split, c.sequence, c.seed);
  if (split == Split::train && c.epochs == 0) check_length(c, *dataset, name);
  samples = check_tokens(samples, c.sequence, c.model.vocabulary, name);
  // The most common mistake, a dataset of another tokenizer, is found here instead of after the
  // set-up.
  std::vector<int32_t> first(static_cast<size_t>(c.sequence) + 1);
  samples->sample(0, first.data());
  return samples;
}

// Opens all datasets of a split as one source; null where there are none. `optional`: datasets
// without a block of the split are left out. Appends to `description` what they are, and to
// `content` the same without their paths.
std::shared_ptr<const SampleSource> open_split(const Config& c, Split split, bool optional,
                                               std::string* description, std::string* content) {
  const Blend& blend = blend_of(c, split);
  std::vector<std::shared_ptr<const SampleSource>> sources;
  std::vector<double> weights;
  const double all_weights = std::accumulate(blend.weights.begin(), blend.weights.end(), 0.0);
  for (size_t i = 0; i < blend.paths.size(); ++i) {
    const std::string& prefix = blend.paths[i];
    const auto dataset = std::make_shared<const IndexedDataset>(prefix);
    if (optional && block_count(*dataset, split_weights(c, split), split, c.sequence) == 0)
      continue;
    sources.push_back(open_dataset(c, dataset, split, prefix));
    if (!blend.weights.empty()) weights.push_back(blend.weights[i]);
    const std::string size =
        fmt::format("{} documents, {} tokens, {} {}", dataset->documents(), dataset->tokens(),
                    sources.back()->samples_per_epoch(),
                    split == Split::train ? "training samples an epoch" : "samples");
    if (!content->empty()) *content += "; ";
    if (blend.weights.size() > 1)  // a blend of one is that dataset
      *content += fmt::format("{:.6g} x ", blend.weights[i] / all_weights);
    *content += fmt::format("{}, first samples {:016x}", size,
                            hash_of_first_samples(*sources.back(), c.sequence));
    if (description == nullptr) continue;
    if (!description->empty()) *description += "; ";
    if (split == Split::validation) *description += "validation: ";
    if (split == Split::test) *description += "test: ";
    if (!blend.weights.empty()) *description += fmt::format("{} x ", blend.weights[i]);
    *description += fmt::format("{}: {}", prefix, size);
  }
  if (sources.size() < 2) return sources.empty() ? nullptr : sources.front();
  return make_blended_samples(std::move(sources), std::move(weights));
}

}  // namespace

std::shared_ptr<const SampleSource> check_tokens(std::shared_ptr<const SampleSource> source,
                                                 int64_t sequence, int64_t vocabulary,
                                                 const std::string& name) {
  return std::make_shared<CheckedSamples>(std::move(source), sequence, vocabulary, name);
}

int32_t end_of_document(const Config& c) {
  const DataConfig& data = c.data;
  const bool none = data.tokenizer == "NullTokenizer";
  if (!none && (!data.vocab_file.empty() || data.tokenizer == "bytes"))
    return make_tokenizer(data.tokenizer, data.vocab_file, data.merge_file)->eod();
  // It is the last token of GPT-2's own vocabulary and of Megatron-LM's NullTokenizer.
  constexpr int64_t gpt2 = 50257;
  if (!none && c.model.vocabulary < gpt2)
    throw std::runtime_error(
        fmt::format("{}: a vocabulary of {} tokens is not GPT-2's, and the token that "
                    "ends its documents is not known: give --vocab-file and --merge-file",
                    data.eod_mask_loss        ? "--eod-mask-loss"
                    : data.reset_position_ids ? "--reset-position-ids"
                                              : "--reset-attention-mask",
                    c.model.vocabulary));
  return static_cast<int32_t>(none ? c.model.vocabulary - 1 : gpt2 - 1);
}

namespace {

DataSources open_all(const Config& c) {
  DataSources data;
  const bool evaluates = c.evaluates();
  if (c.data.mock) {
    if (!c.skip_train) data.train = make_mock_samples(c.model.vocabulary, c.sequence, c.seed);
    if (evaluates) data.validation = make_mock_samples(c.model.vocabulary, c.sequence, c.seed + 1);
    data.description = data.content = data.training_content = "random tokens (--mock-data)";
    return data;
  }
  std::string* description = &data.description;
  if (!c.skip_train) data.train = open_split(c, Split::train, false, description, &data.content);
  data.training_content = data.content;
  // The validation part of --data-path is not described.
  if (!c.data.separate && !c.skip_train) description = nullptr;
  if (evaluates || c.epochs > 0)
    data.validation = open_split(c, Split::validation, !evaluates, description, &data.content);
  if (evaluates && c.data.separate)
    data.test = open_split(c, Split::test, false, description, &data.content);
  return data;
}

}  // namespace

DataSources open_data(const Config& c, const std::string& model) {
  if (!c.model.language_model()) return open_encoder_data(c, model);
  DataSources data = open_all(c);
  DocumentEnds ends;
  ends.mask_loss = c.data.eod_mask_loss;
  ends.reset_positions = c.data.reset_position_ids;
  ends.reset_attention = c.data.reset_attention_mask;
  if (!ends.any()) return data;
  ends.eod = end_of_document(c);
  for (auto* source : {&data.train, &data.validation, &data.test})
    if (source->tokens) *source = Samples(with_document_ends(source->tokens, ends));
  return data;
}

}  // namespace tally::train
