#include "src/train/data_sources.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <stdexcept>
#include <vector>

#include "src/data/split.h"

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

// A sample longer than the whole split would repeat it; a benchmark's user has hardly meant that.
void check_length(const Config& c, const IndexedDataset& dataset, const std::string& name) {
  const Range range =
      split_documents(c.data.split, dataset.sequences())[static_cast<size_t>(Split::train)];
  int64_t tokens = 0;
  for (int64_t i = range.begin; i < range.end && tokens <= c.sequence; ++i)
    tokens += dataset.length(i);
  if (tokens > c.sequence) return;
  throw std::runtime_error(
      fmt::format("{}: --split {} leaves {} tokens for training, and one sample of --seq-length {} "
                  "needs {}: lower --seq-length, change --split or prepare more text",
                  name, c.data.split, tokens, c.sequence, c.sequence + 1));
}

uint64_t hash_of_first_sample(const SampleSource& source, int64_t sequence) {
  std::vector<int32_t> sample(static_cast<size_t>(sequence) + 1);
  source.sample(0, sample.data());
  return XXH3_64bits(sample.data(), sample.size() * sizeof(int32_t));
}

std::shared_ptr<const SampleSource> open_split(const Config& c,
                                               const std::shared_ptr<const IndexedDataset>& dataset,
                                               Split split, const std::string& name) {
  std::shared_ptr<const SampleSource> samples =
      c.epochs > 0 ? make_block_samples(dataset, c.data.split, split, c.sequence, c.seed)
                   : make_gpt_samples(dataset, c.data.split, split, c.sequence, c.seed);
  if (split == Split::train && c.epochs == 0) check_length(c, *dataset, name);
  samples = check_tokens(samples, c.sequence, c.model.vocabulary, name);
  // The commonest mistake, a dataset of another tokenizer, shows here instead of after the set-up.
  std::vector<int32_t> first(static_cast<size_t>(c.sequence) + 1);
  samples->sample(0, first.data());
  return samples;
}

}  // namespace

std::shared_ptr<const SampleSource> check_tokens(std::shared_ptr<const SampleSource> source,
                                                 int64_t sequence, int64_t vocabulary,
                                                 const std::string& name) {
  return std::make_shared<CheckedSamples>(std::move(source), sequence, vocabulary, name);
}

DataSources open_data(const Config& c) {
  DataSources data;
  const bool evaluates = c.eval_interval > 0 && c.eval_iterations > 0;
  if (c.data.mock) {
    data.train = make_mock_samples(c.model.vocabulary, c.sequence, c.seed);
    if (evaluates) data.validation = make_mock_samples(c.model.vocabulary, c.sequence, c.seed + 1);
    data.description = data.content = "random tokens (--mock-data)";
    return data;
  }
  std::vector<std::shared_ptr<const SampleSource>> train, validation;
  for (size_t i = 0; i < c.data.paths.size(); ++i) {
    const std::string& prefix = c.data.paths[i];
    const auto dataset = std::make_shared<const IndexedDataset>(prefix);
    train.push_back(open_split(c, dataset, Split::train, prefix));
    const bool has_blocks =
        c.epochs > 0 && block_count(*dataset, c.data.split, Split::validation, c.sequence) > 0;
    if (evaluates || has_blocks)
      validation.push_back(open_split(c, dataset, Split::validation, prefix));
    const std::string size =
        fmt::format("{} documents, {} tokens, {} training samples an epoch", dataset->documents(),
                    dataset->tokens(), train.back()->samples_per_epoch());
    const char* separator = i > 0 ? "; " : "";
    data.description += separator;
    if (!c.data.weights.empty()) data.description += fmt::format("{} x ", c.data.weights[i]);
    data.description += fmt::format("{}: {}", prefix, size);
    data.content += fmt::format("{}{}, first sample {:016x}", separator, size,
                                hash_of_first_sample(*train.back(), c.sequence));
  }
  const auto join = [&](auto& sources) -> std::shared_ptr<const SampleSource> {
    if (sources.empty()) return nullptr;
    if (sources.size() == 1) return sources.front();
    return make_blended_samples(std::move(sources), c.data.weights);
  };
  data.train = join(train);
  data.validation = join(validation);
  return data;
}

}  // namespace tally::train
