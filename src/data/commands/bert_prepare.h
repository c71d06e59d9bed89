// `tally-train prepare --task bert`: text to the shards of BERT's pre-training data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/data/commands/sentences.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {

struct BertPrepareOptions {
  std::vector<std::string> inputs;  // "-": standard input
  std::string key = "text";         // the key in JSON lines
  std::string format = "auto";      // auto (by name), text, jsonl
  SentenceRule sentences = SentenceRule::lines;
  int workers = 1;
  std::string output;            // the folder in which bert_shard_folder() is made
  int64_t sequence = 128;        // --seq-length: 128 in phase 1, 512 in phase 2
  int64_t max_predictions = 20;  // --max-predictions-per-seq: 20 and 80
  double masked_probability = 0.15;
  double short_sequence_probability = 0.1;
  int64_t dupe_factor = 5;  // times that the text is gone through
  uint64_t seed = 12345;
  int64_t shards = 1;      // at most kMostShards; fewer where some would be empty
  bool lower_case = true;  // for the folder's name
};

constexpr int64_t kMostShards = 512;  // each is an open file while pairs are made

struct BertPrepareSummary {
  std::string folder;
  int64_t documents = 0, sentences = 0, tokens = 0;  // counts of the text
  int64_t samples = 0, shards = 0;
  int64_t input_bytes = 0, output_bytes = 0;
  int64_t replaced = 0;  // invalid UTF-8 sequences
  double seconds = 0;
};

// NVIDIA's name for a folder of shards: "hdf5_lower_case_1_seq_len_128_max_pred_20_masked_lm_prob_
// 0.15_random_seed_12345_dupe_factor_5".
std::string bert_shard_folder(const BertPrepareOptions& options);

// Reads all inputs in order: documents are separated by blank lines, or are the lines of JSON.
// Makes pairs of sentences (sentence_pairs.h), masks them (masking.h) and writes them in random
// order to OUTPUT/FOLDER/training_0.hdf5 and so on (bert_shards.h). The result depends on the text
// and the options but for `workers`. Until it is complete it lies in OUTPUT/FOLDER.tmp; nothing is
// overwritten. Disk: the text's tokens and all samples once more. Memory: one shard. Throws
// std::runtime_error with one sentence.
BertPrepareSummary prepare_bert(const WordPieceTokenizer& tokenizer,
                                const BertPrepareOptions& options);

}  // namespace tally::train
