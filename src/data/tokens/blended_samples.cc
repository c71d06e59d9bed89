// Several datasets as one.
//
// Megatron's order (its build_blending_indices): sample i comes from the source whose due weight *
// max(i, 1) exceeds what it has given by most, the first of equals. Megatron stores the choice of
// every sample in arrays. Here the counts are stored once a page of samples, and the choices of the
// page in use are computed again from them.
#include <algorithm>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "src/data/tokens/dataset.h"

namespace tally::train {
namespace {

constexpr int64_t page_samples = int64_t{1} << 14;

class BlendedSamples final : public SampleSource {
 public:
  BlendedSamples(std::vector<std::shared_ptr<const SampleSource>> sources,
                 std::vector<double> weights)
      : sources_(std::move(sources)), weights_(std::move(weights)) {
    if (sources_.empty() || sources_.size() != weights_.size())
      throw std::invalid_argument("a blend needs one weight a source");
    const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
    for (double& weight : weights_) weight /= sum;
    counts_.emplace_back(sources_.size(), 0);
  }

  // The samples of all sources together.
  int64_t samples_per_epoch() const override {
    int64_t sum = 0;
    for (const auto& source : sources_)
      sum = std::max(sum, sum + std::min(source->samples_per_epoch(), int64_t{1} << 40));
    return sum;
  }

  void sample(int64_t index, int32_t* out) const override {
    Choice choice;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const int64_t page = index / page_samples;
      if (page != page_) turn_to(page);
      choice = choices_[static_cast<size_t>(index % page_samples)];
    }
    sources_[choice.source]->sample(choice.sample, out);
  }

 private:
  struct Choice {
    size_t source = 0;
    int64_t sample = 0;
  };

  void turn_to(int64_t page) const {
    while (static_cast<int64_t>(counts_.size()) <= page)
      make_page(static_cast<int64_t>(counts_.size()) - 1);
    make_page(page);
    page_ = page;
  }

  // Computes the page's choices, and the counts after the last known page.
  void make_page(int64_t page) const {
    std::vector<int64_t> counts = counts_[static_cast<size_t>(page)];
    choices_.resize(static_cast<size_t>(page_samples));
    for (int64_t i = 0; i < page_samples; ++i) {
      const double position = std::max(1.0, static_cast<double>(page * page_samples + i));
      size_t chosen = 0;
      double most = weights_[0] * position - static_cast<double>(counts[0]);
      for (size_t k = 1; k < weights_.size(); ++k) {
        const double behind = weights_[k] * position - static_cast<double>(counts[k]);
        if (behind <= most) continue;
        most = behind;
        chosen = k;
      }
      choices_[static_cast<size_t>(i)] = {chosen, counts[chosen]++};
    }
    if (page + 1 == static_cast<int64_t>(counts_.size())) counts_.push_back(std::move(counts));
  }

  std::vector<std::shared_ptr<const SampleSource>> sources_;
  std::vector<double> weights_;  // they add up to 1
  mutable std::mutex mutex_;
  mutable std::vector<std::vector<int64_t>> counts_;  // samples of each source before each page
  mutable std::vector<Choice> choices_;
  mutable int64_t page_ = -1;
};

}  // namespace

std::unique_ptr<SampleSource> make_blended_samples(
    std::vector<std::shared_ptr<const SampleSource>> sources, std::vector<double> weights) {
  return std::make_unique<BlendedSamples>(std::move(sources), std::move(weights));
}

}  // namespace tally::train
