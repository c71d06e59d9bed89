// Samples for training from Megatron's indexed datasets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tally::train {

// A memory-mapped pair of files PREFIX.bin and PREFIX.idx in Megatron-LM's format, which
// indexed_writer.h describes. Immutable; safe for many threads.
class IndexedDataset {
 public:
  // Opens PREFIX.idx and PREFIX.bin. Throws std::runtime_error with one sentence that names the
  // file, what is wrong and what to do.
  explicit IndexedDataset(const std::string& prefix);
  ~IndexedDataset();
  IndexedDataset(const IndexedDataset&) = delete;
  IndexedDataset& operator=(const IndexedDataset&) = delete;
  int64_t sequences() const;
  int64_t documents() const;
  int64_t tokens() const;
  // The first sequence of a document, and with `document` = documents() the number of sequences in
  // documents.
  int64_t document_begin(int64_t document) const;
  int64_t length(int64_t sequence) const;
  // Copies `count` tokens of a sequence from `offset` on, widened to i32. Throws std::runtime_error
  // with one sentence when a file was cut short, changed or lost since it was opened.
  void read(int64_t sequence, int64_t offset, int64_t count, int32_t* out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The treatment of document ends within a sample (by documents.h).
struct DocumentEnds {
  int32_t eod = -1;              // the token that ends a document
  bool mask_loss = false;        // --eod-mask-loss: the target after it does not count
  bool reset_positions = false;  // --reset-position-ids: positions count from a document's start
  bool reset_attention = false;  // --reset-attention-mask: tokens attend to their document only

  bool any() const { return mask_loss || reset_positions || reset_attention; }
};

// Gives sample number n of a split: sequence + 1 tokens, the last of which is a target alone.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual int64_t samples_per_epoch() const = 0;
  // Writes sequence + 1 tokens. `index` counts from 0 and may pass any number of epochs.
  // Deterministic.
  virtual void sample(int64_t index, int32_t* out) const = 0;
  // The treatment of document ends in batches.
  virtual DocumentEnds document_ends() const { return {}; }
};

enum class Split { train, validation, test };
// Samples in Megatron's order, which is generated lazily: documents are concatenated and shuffled
// per epoch, each sample begins with the last token of the one before, and samples are shuffled.
std::unique_ptr<SampleSource> make_gpt_samples(std::shared_ptr<const IndexedDataset> dataset,
                                               const std::string& split, Split which,
                                               int64_t sequence, uint64_t seed);
// The same tokens cut into blocks, for training by epochs: all documents joined in their order and
// cut into blocks of `sequence` tokens, the rest dropped. `split` divides the blocks, not the
// documents, so that one text is enough. Training's blocks are shuffled anew in every epoch, the
// others keep their order. Every block of an epoch comes exactly once.
std::unique_ptr<SampleSource> make_block_samples(std::shared_ptr<const IndexedDataset> dataset,
                                                 const std::string& split, Split which,
                                                 int64_t sequence, uint64_t seed);
// Blocks of a split; make_block_samples() throws where there are none.
int64_t block_count(const IndexedDataset& dataset, const std::string& split, Split which,
                    int64_t sequence);
// Several sources mixed by weight, in Megatron's order: each sample comes from the source that is
// furthest behind its weight.
std::unique_ptr<SampleSource> make_blended_samples(
    std::vector<std::shared_ptr<const SampleSource>> sources, std::vector<double> weights);
// Random tokens, for measuring without data.
std::unique_ptr<SampleSource> make_mock_samples(int64_t vocabulary, int64_t sequence,
                                                uint64_t seed);

}  // namespace tally::train
