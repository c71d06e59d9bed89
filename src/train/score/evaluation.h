// The loss of a model on a text, every token scored once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "src/data/tokens/dataset.h"
#include "src/model/stage.h"
#include "src/parallel/collectives/mesh.h"
#include "src/train/feed/loader.h"

namespace tally::train {

// Blocks of tokens with the targets to score.
class ScoredBlocks {
 public:
  virtual ~ScoredBlocks() = default;
  virtual int64_t blocks() const = 0;
  // Targets that are scored, in all blocks together.
  virtual int64_t targets() const = 0;
  // The treatment of document ends in the samples that blocks are made of.
  virtual DocumentEnds document_ends() const { return {}; }
  // Writes the block's ids[sequence] and targets[sequence]; a target that is not scored is -1.
  virtual void fill(int64_t block, int32_t* ids, int32_t* targets) const = 0;
};

// A text of N >= 2 tokens in order. Block k reads tokens k * stride ... k * stride + sequence - 1
// and scores the successors that no earlier block has scored. So every token but the first is
// scored once, each with at least sequence - stride tokens of context where the text has them. 1 <=
// stride <= sequence. The last block may be shorter.
std::unique_ptr<ScoredBlocks> make_text_blocks(std::vector<int32_t> tokens, int64_t sequence,
                                               int64_t stride);
// One epoch of a sample source in order, every target scored.
std::unique_ptr<ScoredBlocks> make_sample_blocks(std::shared_ptr<const SampleSource> samples,
                                                 int64_t sequence);

// Forward and loss of a micro batch through all stages of the model.
using EvaluateBatch = std::function<void(const Batch& batch, const Pass& pass)>;

// The losses of a model that all replicas have evaluated.
struct EvaluatedLosses {
  LabelCounts counted{};  // labels of each head
  // Each head's mean over its labels, of all heads together. A head without labels adds nothing.
  double mean = 0;
  // The mean of a model with so many heads. Throws CheckFailed where a head has no label: a mean of
  // nothing is no number.
  double mean_of(int heads) const;
};
// `state`: the sums that Stage::evaluate() left here, all with the weight 1. `mine`: the labels
// that this replica counted. Overwrites the sums. Collective; waits for the device.
EvaluatedLosses evaluated_losses(Stream& stream, StepState* state, const LabelCounts& mine,
                                 const Mesh& mesh);

// The mean loss of all scored targets. `batch`: device memory for ids and labels [B, sequence] that
// the model was made for; `state`: a StepState in device memory, overwritten. Waits for the end.
// The replicas of `mesh` divide the blocks, and all its processes get the mean.
// `correct` is null or a number in device memory, overwritten: how many targets were predicted.
double mean_loss(Stream& stream, const EvaluateBatch& evaluate, const Batch& batch,
                 const ScoredBlocks& blocks, StepState* state, const Mesh& mesh,
                 double* correct = nullptr);

// The losses of `micro_batches` micro batches per replica. The loader holds its batches for
// evaluation_in_flight calls; the rest as in mean_loss().
inline constexpr int evaluation_in_flight = 16;
EvaluatedLosses batch_losses(Stream& stream, const EvaluateBatch& evaluate, Batch& batch,
                             MicroBatches& loader, int64_t micro_batches, StepState* state,
                             const Mesh& mesh);

}  // namespace tally::train
