#include "src/train/score/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "src/data/tokens/documents.h"
#include "src/device/events.h"
#include "src/train/feed/loader.h"
#include "src/train/run/failures.h"

namespace tally::train {
namespace {

// Batches whose copies to the device may be in flight.
constexpr int64_t copies_in_flight = 8;

class TextBlocks final : public ScoredBlocks {
 public:
  TextBlocks(std::vector<int32_t> tokens, int64_t sequence, int64_t stride)
      : tokens_(std::move(tokens)), sequence_(sequence), stride_(stride) {
    if (tokens_.size() < 2 || stride < 1 || stride > sequence)
      throw std::invalid_argument("make_text_blocks: nothing to score, or an impossible stride");
  }
  int64_t blocks() const override {
    return 1 + (std::max<int64_t>(0, targets() - sequence_) + stride_ - 1) / stride_;
  }
  int64_t targets() const override { return static_cast<int64_t>(tokens_.size()) - 1; }
  void fill(int64_t block, int32_t* ids, int32_t* targets) const override {
    const int64_t first = block * stride_, size = static_cast<int64_t>(tokens_.size());
    const int64_t scored_before = block == 0 ? 0 : sequence_ - stride_;
    for (int64_t j = 0; j < sequence_; ++j) {
      const int64_t at = first + j;
      ids[j] = at < size ? tokens_[static_cast<size_t>(at)] : 0;
      targets[j] = at + 1 < size && j >= scored_before ? tokens_[static_cast<size_t>(at) + 1] : -1;
    }
  }

 private:
  std::vector<int32_t> tokens_;
  int64_t sequence_, stride_;
};

class SampleBlocks final : public ScoredBlocks {
 public:
  SampleBlocks(std::shared_ptr<const SampleSource> samples, int64_t sequence)
      : samples_(std::move(samples)), sequence_(sequence), targets_(blocks() * sequence) {
    if (!samples_->document_ends().mask_loss) return;
    targets_ = 0;
    std::vector<int32_t> ids(static_cast<size_t>(sequence)), targets(ids.size());
    for (int64_t block = 0; block < blocks(); ++block)
      targets_ += fill_row(block, ids.data(), targets.data());
  }
  int64_t blocks() const override { return samples_->samples_per_epoch(); }
  int64_t targets() const override { return targets_; }
  DocumentEnds document_ends() const override { return samples_->document_ends(); }
  void fill(int64_t block, int32_t* ids, int32_t* targets) const override {
    fill_row(block, ids, targets);
  }

 private:
  // Returns how many targets count.
  int64_t fill_row(int64_t block, int32_t* ids, int32_t* targets) const {
    std::vector<int32_t> row(static_cast<size_t>(sequence_) + 1);
    samples_->sample(block, row.data());
    std::copy(row.begin(), row.end() - 1, ids);
    std::copy(row.begin() + 1, row.end(), targets);
    const DocumentEnds ends = samples_->document_ends();
    return ends.mask_loss ? mask_document_ends(ids, sequence_, ends.eod, targets) : sequence_;
  }

  std::shared_ptr<const SampleSource> samples_;
  int64_t sequence_, targets_;
};

}  // namespace

std::unique_ptr<ScoredBlocks> make_text_blocks(std::vector<int32_t> tokens, int64_t sequence,
                                               int64_t stride) {
  return std::make_unique<TextBlocks>(std::move(tokens), sequence, stride);
}

std::unique_ptr<ScoredBlocks> make_sample_blocks(std::shared_ptr<const SampleSource> samples,
                                                 int64_t sequence) {
  return std::make_unique<SampleBlocks>(std::move(samples), sequence);
}

EvaluatedLosses evaluated_losses(Stream& stream, StepState* state, const LabelCounts& mine,
                                 const Mesh& mesh) {
  StepState all{};
  std::copy(mine.begin(), mine.end(), all.counted);
  stream.copy(state->counted, all.counted, sizeof all.counted);
  mesh.samples().all_reduce(stream, Tensor(state->counted, DType::f64, {2}));
  mesh.world().all_reduce(stream, Tensor(state->loss_sums, DType::f64, {2}));
  stream.copy(&all, state, sizeof all);
  stream.synchronize();
  EvaluatedLosses losses;
  for (const size_t head : {0UL, 1UL}) {
    losses.counted[head] = std::llround(all.counted[head]);
    if (all.counted[head] > 0) losses.mean += all.loss_sums[head] / all.counted[head];
  }
  return losses;
}

double EvaluatedLosses::mean_of(int heads) const {
  for (int head = 0; head < heads; ++head) {
    if (counted[static_cast<size_t>(head)] == 0)
      throw CheckFailed(
          heads == 1 ? "no label of the held-out data counts, so that there is no loss"
                     : fmt::format("no label of the model's head {} of {} counts in the held-out "
                                   "data, so that there is no loss",
                                   head + 1, heads));
  }
  return mean;
}

double mean_loss(Stream& stream, const EvaluateBatch& evaluate, const Batch& batch,
                 const ScoredBlocks& blocks, StepState* state, const Mesh& mesh, double* correct) {
  const int64_t rows = batch.ids.dim(0), sequence = batch.ids.dim(1), count = blocks.blocks();
  const int64_t numbers = rows * sequence;
  int64_t scored = 0;
  const DocumentEnds ends = blocks.document_ends();
  const int64_t slot = 4 * numbers + 1;  // ids, targets, positions, cu_seqlens
  const HostMemory host(stream, static_cast<size_t>(copies_in_flight * slot) * sizeof(int32_t));
  stream.fill_zero(state, sizeof(StepState));
  if (correct) stream.fill_zero(correct, sizeof(double));
  const int64_t stride = rows * mesh.samples().size();
  for (int64_t first = rows * mesh.samples().rank(), k = 0; first < count; first += stride, ++k) {
    if (k > 0 && k % copies_in_flight == 0) stream.synchronize();
    int32_t* ids = host.as<int32_t>() + k % copies_in_flight * slot;
    int32_t* targets = ids + numbers;
    std::fill(ids, ids + numbers, 0);
    std::fill(targets, targets + numbers, -1);
    for (int64_t b = 0; b < std::min(rows, count - first); ++b)
      blocks.fill(first + b, ids + b * sequence, targets + b * sequence);
    const int64_t counted =
        std::count_if(targets, targets + numbers, [](int32_t t) { return t >= 0; });
    HostBatch filled_host{ids, targets, nullptr, nullptr, counted};
    if (ends.any()) {
      if (batch.positions.defined()) filled_host.positions = targets + numbers;
      if (batch.cu_seqlens.defined()) filled_host.cu_seqlens = targets + 2 * numbers;
      describe_documents(ids, rows, sequence, ends.eod, const_cast<int32_t*>(filled_host.positions),
                         const_cast<int32_t*>(filled_host.cu_seqlens));
    }
    Batch filled = batch;
    copy_batch(stream, filled_host, &filled);
    scored += counted;
    evaluate(filled, {1, {}, state, nullptr, correct});
  }
  if (correct) mesh.world().all_reduce(stream, Tensor(correct, DType::f64, {1}));
  return evaluated_losses(stream, state, {scored}, mesh).mean_of(1);
}

EvaluatedLosses batch_losses(Stream& stream, const EvaluateBatch& evaluate, Batch& batch,
                             MicroBatches& loader, int64_t micro_batches, StepState* state,
                             const Mesh& mesh) {
  LabelCounts counted{};
  stream.fill_zero(state, sizeof(StepState));
  for (int64_t k = 0; k < micro_batches; ++k) {
    loader.load(&batch);
    evaluate(batch, {1, {}, state});
    for (const size_t head : {0UL, 1UL})
      counted[head] += batch.counted[head] >= 0       ? batch.counted[head]
                       : batch.labels[head].defined() ? batch.labels[head].numel()
                                                      : 0;
    if (k % evaluation_in_flight == evaluation_in_flight - 1) stream.synchronize();
  }
  return evaluated_losses(stream, state, counted, mesh);
}

}  // namespace tally::train
