// Extractive question answering: SQuAD 1.1 (Rajpurkar et al. 2016) and 2.0 (Rajpurkar et al. 2018)
// from the published JSON files to the features that BERT takes, as run_squad.py of
// google-research/bert makes them. squad_predictions.h leads back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {

// A paragraph that several questions share. Positions count characters (code points).
struct SquadParagraph {
  std::string context;
  std::vector<std::string> words;  // the context split at blank, tab, CR, LF and U+202F
  std::vector<int32_t> word_of;    // [characters]: the word at or before; -1 before the first
};

struct SquadAnswer {
  std::string text;
  int64_t start = 0;  // the text's position in the context
};

struct SquadExample {
  std::string id, question;
  std::shared_ptr<const SquadParagraph> paragraph;
  std::vector<SquadAnswer> answers;
  bool is_impossible = false;  // 2.0: the paragraph has no answer
  // The answer's first and last word; for training only, -1 where there is no answer.
  int32_t start_word = -1, end_word = -1;
};

struct SquadFile {
  std::vector<SquadExample> examples;
  int64_t left_out = 0;  // for training: examples whose answer's text is not at its location
};

// Reads SQuAD's files as published (articles of paragraphs under "data"), and the rows of Hugging
// Face's datasets: an object a line, a list, or a list under "data". Ids are texts or integers.
// `version_2`: questions may be impossible; a row without answers is. No two have the same id.
// `training`: every possible question has one answer.
// Throws std::runtime_error with one sentence that names the file and the location in it, as
// "FILE:LINE:COLUMN" for a fault of syntax and "FILE: data[0].paragraphs[3]" for others.
SquadFile read_squad(const std::string& path, bool training, bool version_2);

struct SquadOptions {
  int64_t sequence = 384;  // --seq-length
  int64_t stride = 128;    // --doc-stride: tokens between the beginnings of windows
  int64_t question = 64;   // --max-query-length: tokens of a question that are kept
};

// A window of a paragraph with its question: [CLS] question [SEP] window [SEP].
struct SquadFeature {
  int64_t example = 0;  // its number in the list of examples
  std::vector<int32_t> ids, token_types;
  int32_t window_begin = 0;      // the window's position in ids
  std::vector<int32_t> word_of;  // [tokens of the window]: numbers of words of the paragraph
  // [tokens of the window]: whether no other window has more context around the token
  std::vector<uint8_t> most_context;
  // Training: first and last token of the answer in ids; 0 where the window has not all of it.
  int32_t start = -1, end = -1;
};

// Features of all examples, in order. Throws std::invalid_argument where the options leave no room
// for a paragraph.
std::vector<SquadFeature> make_squad_features(const std::vector<SquadExample>& examples,
                                              const WordPieceTokenizer& tokenizer,
                                              const SquadOptions& options, bool training);

// Sample n of an epoch is feature n, or with `shuffle` each once in an order of the epoch.
std::unique_ptr<EncoderSource> make_squad_samples(
    std::shared_ptr<const std::vector<SquadFeature>> features, int64_t sequence, bool shuffle,
    uint64_t seed);

}  // namespace tally::train
