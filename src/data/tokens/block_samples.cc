// Samples for training by epochs over one text.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "src/data/tokens/dataset.h"
#include "src/data/tokens/order.h"
#include "src/data/tokens/split.h"

namespace tally::train {
namespace {

class BlockSamples final : public SampleSource {
 public:
  BlockSamples(std::shared_ptr<const IndexedDataset> dataset, std::vector<int64_t> starts,
               Range range, int64_t sequence, bool shuffled, uint64_t seed)
      : dataset_(std::move(dataset)),
        starts_(std::move(starts)),
        range_(range),
        sequence_(sequence),
        order_(range.end - range.begin, shuffled, seed) {}

  int64_t samples_per_epoch() const override { return order_.size(); }

  void sample(int64_t index, int32_t* out) const override {
    read((range_.begin + order_(index)) * sequence_, sequence_ + 1, out);
  }

 private:
  void read(int64_t at, int64_t wanted, int32_t* out) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), at);
    for (auto document = after - starts_.begin() - 1; wanted > 0; ++document) {
      const int64_t skip = at - starts_[static_cast<size_t>(document)];
      const int64_t there = starts_[static_cast<size_t>(document) + 1] - at;
      const int64_t count = std::min(there, wanted);
      dataset_->read(document, skip, count, out);
      out += count;
      at += count;
      wanted -= count;
    }
  }

  std::shared_ptr<const IndexedDataset> dataset_;
  std::vector<int64_t> starts_;  // each document's start in the joined text, and its end
  Range range_;                  // a range of blocks
  int64_t sequence_;
  EpochOrder order_;
};

// A block's last target is the token after it, so the text's last token does not start a block.
Range block_range(int64_t tokens, const std::string& split, Split which, int64_t sequence) {
  const int64_t blocks = tokens > 0 ? (tokens - 1) / sequence : 0;
  return split_documents(split, blocks)[static_cast<size_t>(which)];
}

}  // namespace

int64_t block_count(const IndexedDataset& dataset, const std::string& split, Split which,
                    int64_t sequence) {
  const Range range = block_range(dataset.tokens(), split, which, sequence);
  return range.end - range.begin;
}

std::unique_ptr<SampleSource> make_block_samples(std::shared_ptr<const IndexedDataset> dataset,
                                                 const std::string& split, Split which,
                                                 int64_t sequence, uint64_t seed) {
  constexpr const char* names[] = {"training", "validation", "test"};
  std::vector<int64_t> starts{0};
  starts.reserve(static_cast<size_t>(dataset->sequences()) + 1);
  for (int64_t i = 0; i < dataset->sequences(); ++i)
    starts.push_back(starts.back() + dataset->length(i));
  const Range range = block_range(starts.back(), split, which, sequence);
  if (range.begin == range.end)
    throw std::runtime_error(
        fmt::format("a text of {} tokens has {} blocks of {} tokens, and --split {} leaves none "
                    "for {}: lower --seq-length or change --split",
                    starts.back(), std::max<int64_t>(0, starts.back() - 1) / sequence, sequence,
                    split, names[static_cast<size_t>(which)]));
  return std::make_unique<BlockSamples>(std::move(dataset), std::move(starts), range, sequence,
                                        which == Split::train, seed);
}

}  // namespace tally::train
