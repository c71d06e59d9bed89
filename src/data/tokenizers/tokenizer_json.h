// The files of a byte-level BPE tokenizer: vocab.json with merges.txt, or tokenizer.json, in which
// Hugging Face's tokenizers keeps both and more.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace tally::train {

struct MergeLine {
  std::string left, right;
  std::string location;  // for messages: "--merge-file PATH:LINE"
};
using MergeLines = std::vector<MergeLine>;  // in the order of their ranks

struct TokenizerJson {
  nlohmann::json vocabulary;         // token: number
  std::optional<MergeLines> merges;  // set if the file was a tokenizer.json
};

// All of a file. `flag`: for the message. Throws std::runtime_error with one sentence.
std::string read_tokenizer_file(const std::string& path, const char* flag);

// `json` itself where it is a vocabulary; from a tokenizer.json its vocabulary with the added
// tokens, and its merges. Throws std::runtime_error with one sentence where it is not GPT-2's kind
// of tokenizer: byte-level BPE, GPT-2's pattern, no normalization, no space put before the text.
TokenizerJson split_tokenizer_json(nlohmann::json json, const std::string& path);

// Vocabulary and merges of a tokenizer.json of byte-level BPE with any other rules
// (byte_level_rules.h); the added tokens are not in the vocabulary. Throws std::runtime_error with
// one sentence.
TokenizerJson pairs_of_tokenizer_json(const nlohmann::json& json, const std::string& path);

// The reason why a tokenizer.json splits or joins texts differently from GPT-2's; empty: it does
// not, or it has no "model".
std::string difference_from_gpt2(const nlohmann::json& json);

// A merges.txt. Throws std::runtime_error with one sentence.
MergeLines read_merge_lines(const std::string& path);

}  // namespace tally::train
