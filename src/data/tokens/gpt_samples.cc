// The samples of GPT training, generated when asked for.
//
// Megatron concatenates the documents of a split epoch after epoch, each in another order, cuts the
// stream into samples of sequence + 1 tokens that overlap by one, and shuffles the samples. It
// stores all of that in arrays, gigabytes for 300 million samples. Here the order of each epoch
// follows from (seed, epoch): sample i starts at token i * sequence of the stream, which lies in
// epoch floor(i * sequence / tokens), and is permuted within its epoch. Each epoch is shuffled by
// itself, so a last epoch that is not used up holds none of its samples twice, which Megatron
// handles separately.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <stdexcept>

#include "src/data/tokens/dataset.h"
#include "src/data/tokens/permutation.h"
#include "src/data/tokens/split.h"

namespace tally::train {
namespace {

// One epoch: its sequences in their order, and the first token of each.
struct Epoch {
  int64_t number = -1;
  std::vector<int32_t> order;
  std::vector<int64_t> starts;  // order.size() + 1 entries
};

class GptSamples : public SampleSource {
 public:
  GptSamples(std::shared_ptr<const IndexedDataset> dataset, Range range, int64_t sequence,
             uint64_t seed)
      : dataset_(std::move(dataset)), range_(range), sequence_(sequence), seed_(seed) {
    for (int64_t i = range_.begin; i < range_.end; ++i) tokens_ += dataset_->length(i);
  }

  int64_t tokens() const { return tokens_; }
  int64_t samples_per_epoch() const override {
    return std::max<int64_t>(1, (tokens_ - 1) / sequence_);
  }

  void sample(int64_t index, int32_t* out) const override {
    const int64_t start = shuffled(index) * sequence_;
    int64_t epoch = start / tokens_;
    int64_t offset = start % tokens_;
    int64_t wanted = sequence_ + 1;
    while (wanted > 0) {
      const int64_t got = read_epoch(*epoch_order(epoch), offset, wanted, out);
      out += got;
      wanted -= got;
      offset = 0;
      ++epoch;
    }
  }

 private:
  // The first sample that starts in an epoch.
  int64_t first_sample(int64_t epoch) const {
    return static_cast<int64_t>((static_cast<__int128_t>(epoch) * tokens_ + sequence_ - 1) /
                                sequence_);
  }

  int64_t shuffled(int64_t index) const {
    const auto epoch = static_cast<int64_t>(static_cast<__int128_t>(index) * sequence_ / tokens_);
    const int64_t first = first_sample(epoch);
    const int64_t count = first_sample(epoch + 1) - first;
    const Permutation permutation(static_cast<uint64_t>(count), stream_seed(epoch, 1));
    return first + static_cast<int64_t>(permutation(static_cast<uint64_t>(index - first)));
  }

  uint64_t stream_seed(int64_t epoch, uint64_t purpose) const {
    return mix64(mix64(seed_) ^ mix64(static_cast<uint64_t>(epoch) * 2 + purpose));
  }

  std::shared_ptr<const Epoch> epoch_order(int64_t number) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const Epoch>& kept = epochs_[static_cast<size_t>(number) % epochs_.size()];
    if (kept == nullptr || kept->number != number) kept = make_epoch(number);
    return kept;
  }

  std::shared_ptr<const Epoch> make_epoch(int64_t number) const {
    auto epoch = std::make_shared<Epoch>();
    epoch->number = number;
    epoch->order.resize(static_cast<size_t>(range_.end - range_.begin));
    std::iota(epoch->order.begin(), epoch->order.end(), static_cast<int32_t>(range_.begin));
    RandomSequence random(stream_seed(number, 0));
    for (size_t i = epoch->order.size(); i > 1; --i) {
      std::swap(epoch->order[i - 1], epoch->order[random.below(i)]);
    }
    epoch->starts.reserve(epoch->order.size() + 1);
    int64_t start = 0;
    for (int32_t sequence : epoch->order) {
      epoch->starts.push_back(start);
      start += dataset_->length(sequence);
    }
    epoch->starts.push_back(start);
    return epoch;
  }

  // Copies up to `wanted` tokens of an epoch from `offset` on; returns how many there were.
  int64_t read_epoch(const Epoch& epoch, int64_t offset, int64_t wanted, int32_t* out) const {
    const auto after = std::upper_bound(epoch.starts.begin(), epoch.starts.end(), offset);
    auto at = static_cast<size_t>(after - epoch.starts.begin()) - 1;
    int64_t done = 0;
    for (; at < epoch.order.size() && done < wanted; ++at) {
      const int64_t skip = offset + done - epoch.starts[at];
      const int64_t there = epoch.starts[at + 1] - epoch.starts[at] - skip;
      const int64_t count = std::min(there, wanted - done);
      dataset_->read(epoch.order[at], skip, count, out + done);
      done += count;
    }
    return done;
  }

  std::shared_ptr<const IndexedDataset> dataset_;
  Range range_;
  int64_t sequence_;
  uint64_t seed_;
  int64_t tokens_ = 0;
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const Epoch>, 2> epochs_;  // this one and the next
};

class MockSamples : public SampleSource {
 public:
  MockSamples(int64_t vocabulary, int64_t sequence, uint64_t seed)
      : vocabulary_(static_cast<uint64_t>(vocabulary)), sequence_(sequence), seed_(mix64(seed)) {}
  int64_t samples_per_epoch() const override { return int64_t{1} << 40; }  // no end
  void sample(int64_t index, int32_t* out) const override {
    RandomSequence random(mix64(seed_ ^ mix64(static_cast<uint64_t>(index))));
    for (int64_t i = 0; i <= sequence_; ++i)
      out[i] = static_cast<int32_t>(random.below(vocabulary_));
  }

 private:
  uint64_t vocabulary_;
  int64_t sequence_;
  uint64_t seed_;
};

}  // namespace

std::unique_ptr<SampleSource> make_gpt_samples(std::shared_ptr<const IndexedDataset> dataset,
                                               const std::string& split, Split which,
                                               int64_t sequence, uint64_t seed) {
  constexpr const char* kNames[] = {"training", "validation", "test"};
  const int64_t documents = dataset->sequences();
  if (documents > std::numeric_limits<int32_t>::max()) {
    throw std::runtime_error(
        fmt::format("a dataset of {} documents: at most 2^31 - 1 are possible", documents));
  }
  const Range range = split_documents(split, documents)[static_cast<size_t>(which)];
  auto samples = std::make_unique<GptSamples>(std::move(dataset), range, sequence, seed);
  if (samples->tokens() == 0) {
    throw std::runtime_error(fmt::format(
        "--split {} leaves no documents for {} of a dataset of {} document{}: change --split, or "
        "prepare more documents "
        "(tally-train prepare --split-documents-on-blank-lines makes many of one text)",
        split, kNames[static_cast<size_t>(which)], documents, documents == 1 ? "" : "s"));
  }
  return samples;
}

std::unique_ptr<SampleSource> make_mock_samples(int64_t vocabulary, int64_t sequence,
                                                uint64_t seed) {
  return std::make_unique<MockSamples>(vocabulary, sequence, seed);
}

}  // namespace tally::train
