// A second vocabulary beside the one that is used. Programs differ in which of the two they read
// (transformers: tokenizer.json; others: vocab.json with merges.txt, or vocab.txt), so the two must
// agree.
#pragma once

#include <string>
#include <vector>

#include "src/data/tokenizers/tokenizer_json.h"

namespace tally::train {

// `used`: what was read of --vocab-file and --merge-file. Compares a tokenizer.json, or where that
// is the vocabulary a vocab.json and a merges.txt, in the folders of both. Throws
// std::runtime_error with one sentence that names two files and a token or merge in which they
// differ.
void check_other_pairs(const std::string& vocab_file, const std::string& merge_file,
                       const TokenizerJson& used);

// The same of BERT's: a tokenizer.json, or where that is the vocabulary a vocab.txt.
void check_other_pieces(const std::string& vocab_file);

// The lines of a vocab.txt: token n is the n-th. Throws std::runtime_error with one sentence.
std::vector<std::string> read_vocab_txt(const std::string& path);

}  // namespace tally::train
