#include "src/data/documents.h"

#include <utility>

namespace tally::train {
namespace {

class MaskedSamples final : public SampleSource {
 public:
  MaskedSamples(std::shared_ptr<const SampleSource> source, int32_t eod)
      : source_(std::move(source)), eod_(eod) {}
  int64_t samples_per_epoch() const override { return source_->samples_per_epoch(); }
  void sample(int64_t index, int32_t* out) const override { source_->sample(index, out); }
  int32_t uncounted_input() const override { return eod_; }

 private:
  std::shared_ptr<const SampleSource> source_;
  int32_t eod_;
};

}  // namespace

void document_positions(const int32_t* ids, int64_t tokens, int32_t eod, int32_t* positions) {
  int32_t position = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    positions[t] = position;
    position = ids[t] == eod ? 0 : position + 1;
  }
}

std::vector<int32_t> document_starts(const int32_t* ids, int64_t tokens, int32_t eod) {
  std::vector<int32_t> starts{0};
  for (int64_t t = 0; t + 1 < tokens; ++t)
    if (ids[t] == eod) starts.push_back(static_cast<int32_t>(t + 1));
  starts.push_back(static_cast<int32_t>(tokens));
  return starts;
}

int64_t mask_document_ends(const int32_t* ids, int64_t tokens, int32_t eod, int32_t* targets) {
  int64_t counted = 0;
  for (int64_t t = 0; t < tokens; ++t) {
    if (ids[t] == eod) targets[t] = -1;
    if (targets[t] >= 0) ++counted;
  }
  return counted;
}

std::shared_ptr<const SampleSource> with_masked_document_ends(
    std::shared_ptr<const SampleSource> source, int32_t eod) {
  return std::make_shared<MaskedSamples>(std::move(source), eod);
}

}  // namespace tally::train
