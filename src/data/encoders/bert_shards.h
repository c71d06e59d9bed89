// BERT's pre-training data in the HDF5 files ("shards") of NVIDIA's DeepLearningExamples, which
// `tally-train prepare --task bert` writes and which are read as they are. A shard has the datasets
//   input_ids             [samples, sequence]         the tokens, with masks; 0 after the last
//   input_mask            [samples, sequence]         1 for a token, 0 after the last
//   segment_ids           [samples, sequence]         0 for A, 1 for B, 0 after the last
//   masked_lm_positions   [samples, max_predictions]  where masked tokens are; 0 after the last
//   masked_lm_ids         [samples, max_predictions]  the tokens there; 0 after the last
//   next_sentence_labels  [samples]                   0: B follows A; 1: B is random
// as integers of any size (written: i4, i1, i1, i4, i4, i1, compressed with gzip).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/encoders/masking.h"

namespace tally::train {

enum class Masking {
  fixed,    // the file's masks: the same in every epoch
  dynamic,  // drawn anew for every epoch (Liu et al. 2019, RoBERTa)
};

struct BertShardOptions {
  // Vocabulary and tokens; probability and max_predictions are those of dynamic masking, and no
  // more than the file's max_predictions are masked.
  MaskingOptions masking;
  Masking mode = Masking::fixed;
  bool shuffle = true;  // shards and the samples of a shard, anew in every epoch
  uint64_t seed = 1234;
};

// The files of a path: the path itself where it is a file, else the .hdf5 and .h5 files of the
// folder by name. Where some of a folder's names contain "training", these are the files for
// training, and with `training` false those that contain "test" or "validation". Throws
// std::runtime_error with one sentence where there are none.
std::vector<std::string> bert_shard_files(const std::string& path, bool training);

// Samples of all shards. Sample n is the same for any number of processes and threads: a row of
// shard after shard, both in the epoch's order. The shard in use and the next one are kept in
// memory. All files must have the same shape but for the number of samples. Throws
// std::runtime_error with one sentence that names the file where it is none of this kind; sample()
// throws where a row is damaged.
std::unique_ptr<EncoderSource> open_bert_shards(const std::vector<std::string>& files,
                                                const BertShardOptions& options);

// Writes one shard: what open_bert_shards() reads. Throws std::runtime_error with one sentence.
void write_bert_shard(const std::string& path, const std::vector<EncoderSample>& samples,
                      int64_t sequence, int64_t max_predictions);

}  // namespace tally::train
