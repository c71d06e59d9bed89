#include "src/train/data_sources.h"

#include <fmt/format.h>

#include <stdexcept>
#include <vector>

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

std::shared_ptr<const SampleSource> open_split(const Config& c,
                                               const std::shared_ptr<const IndexedDataset>& dataset,
                                               Split split, const std::string& name) {
  std::shared_ptr<const SampleSource> samples =
      make_gpt_samples(dataset, c.data.split, split, c.sequence, c.seed);
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
    data.description = "random tokens (--mock-data)";
    return data;
  }
  const std::string& prefix = c.data.paths.front();
  const auto dataset = std::make_shared<const IndexedDataset>(prefix);
  data.train = open_split(c, dataset, Split::train, prefix);
  if (evaluates) data.validation = open_split(c, dataset, Split::validation, prefix);
  data.description =
      fmt::format("{}: {} documents, {} tokens, {} training samples an epoch", prefix,
                  dataset->documents(), dataset->tokens(), data.train->samples_per_epoch());
  return data;
}

}  // namespace tally::train
