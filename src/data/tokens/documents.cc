#include "src/data/tokens/documents.h"

#include <algorithm>
#include <utility>

namespace tally::train {
namespace {

class SamplesWithEnds final : public SampleSource {
 public:
  SamplesWithEnds(std::shared_ptr<const SampleSource> source, const DocumentEnds& ends)
      : source_(std::move(source)), ends_(ends) {}
  int64_t samples_per_epoch() const override { return source_->samples_per_epoch(); }
  void sample(int64_t index, int32_t* out) const override { source_->sample(index, out); }
  DocumentEnds document_ends() const override { return ends_; }

 private:
  std::shared_ptr<const SampleSource> source_;
  DocumentEnds ends_;
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

void describe_documents(const int32_t* ids, int64_t rows, int64_t tokens, int32_t eod,
                        int32_t* positions, int32_t* cu_seqlens) {
  int64_t documents = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const int32_t* of_row = ids + row * tokens;
    if (positions) document_positions(of_row, tokens, eod, positions + row * tokens);
    if (!cu_seqlens) continue;
    const std::vector<int32_t> starts = document_starts(of_row, tokens, eod);
    for (size_t d = 0; d + 1 < starts.size(); ++d)
      cu_seqlens[documents++] = static_cast<int32_t>(row * tokens) + starts[d];
  }
  const int64_t all = rows * tokens;
  if (cu_seqlens)
    std::fill(cu_seqlens + documents, cu_seqlens + all + 1, static_cast<int32_t>(all));
}

std::shared_ptr<const SampleSource> with_document_ends(std::shared_ptr<const SampleSource> source,
                                                       const DocumentEnds& ends) {
  return std::make_shared<SamplesWithEnds>(std::move(source), ends);
}

}  // namespace tally::train
