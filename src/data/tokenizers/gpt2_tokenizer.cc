// GPT-2's byte-pair encoding: files, words, cache.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_map>

#include "src/data/text/json_fault.h"
#include "src/data/text/utf8.h"
#include "src/data/tokenizers/merges.h"
#include "src/data/tokenizers/other_vocabulary.h"
#include "src/data/tokenizers/pretokenizer.h"
#include "src/data/tokenizers/tokenizer.h"
#include "src/data/tokenizers/tokenizer_json.h"
#include "src/data/tokenizers/tokenizer_settings.h"
#include "src/data/tokenizers/word_cache.h"

namespace tally::train {
namespace {

constexpr const char* kEndOfText = "<|endoftext|>";

std::string utf8_of(uint32_t code) {  // of the codes below 0x800 that the byte map uses
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

// GPT-2 writes each byte as a printable character: itself where it is one in Latin-1, else the next
// character from U+0100 on.
std::array<std::string, 256> byte_characters() {
  std::array<std::string, 256> characters;
  uint32_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    characters[byte] = utf8_of(printable ? byte : next++);
  }
  return characters;
}

using Vocabulary = std::unordered_map<std::string, int32_t>;

// `json`: an object of token: number. `what`: "--vocab-file 'PATH'".
Vocabulary vocabulary_of(const nlohmann::json& json, const std::string& what) {
  const auto bad = [&](const std::string& why) {
    return std::runtime_error(fmt::format(
        "{} is not a GPT-2 vocabulary (a JSON object of token: number): {}", what, why));
  };
  if (!json.is_object() || json.empty()) throw bad("it holds no such object");
  Vocabulary vocabulary;
  vocabulary.reserve(json.size());
  std::unordered_map<int32_t, std::string> owners;
  owners.reserve(json.size());
  for (const auto& [token, number] : json.items()) {
    if (!number.is_number_integer() || number.get<int64_t>() < 0 ||
        number.get<int64_t>() >= std::numeric_limits<int32_t>::max()) {
      throw bad(fmt::format("token \"{}\" has the number {}", token, number.dump()));
    }
    const auto id = number.get<int32_t>();
    const auto [owner, fresh] = owners.emplace(id, token);
    if (!fresh) {
      throw bad(fmt::format("tokens \"{}\" and \"{}\" both have the number {}", owner->second,
                            token, id));
    }
    vocabulary.emplace(token, id);
  }
  return vocabulary;
}

nlohmann::json read_vocabulary(const std::string& path) {
  try {
    return nlohmann::json::parse(read_tokenizer_file(path, "--vocab-file"));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(
        fmt::format("--vocab-file '{}' is not a GPT-2 vocabulary (a JSON object of token: number): "
                    "{}",
                    path, json_fault(error)));
  }
}

class Gpt2Tokenizer : public Tokenizer {
 public:
  Gpt2Tokenizer(const std::string& vocab_file, const std::string& merge_file)
      : merges_(read_files(vocab_file, merge_file)) {}

  std::unique_ptr<Encoder> make_encoder() const override;
  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (int32_t token : tokens) {
      const auto at = static_cast<size_t>(token);
      if (token < 0 || at >= bytes_.size() || bytes_[at].empty()) {
        throw std::out_of_range(
            fmt::format("{} is not a token of this vocabulary of {}", token, bytes_.size()));
      }
      text += bytes_[at];
    }
    return text;
  }
  int64_t vocabulary() const override { return static_cast<int64_t>(bytes_.size()); }
  int32_t eod() const override { return eod_; }
  bool utf8() const override { return true; }
  size_t safe_cut(std::string_view text) const override {
    return words_.safe_cut(text.substr(0, valid_utf8_prefix(text)));
  }

  const Pretokenizer& words() const { return words_; }
  const MergeTable& merges() const { return merges_; }
  int32_t byte_token(char c) const { return byte_tokens_[static_cast<unsigned char>(c)]; }

 private:
  MergeTable read_files(const std::string& vocab_file, const std::string& merge_file);
  static MergeTable read_merges(const MergeLines& merges, const Vocabulary& vocabulary);
  void fill_bytes(const Vocabulary& vocabulary, const std::array<std::string, 256>& characters);

  Pretokenizer words_;
  std::vector<std::string> bytes_;  // of each token
  std::array<int32_t, 256> byte_tokens_{};
  int32_t eod_ = 0;
  MergeTable merges_;
};

MergeTable Gpt2Tokenizer::read_files(const std::string& vocab_file, const std::string& merge_file) {
  check_gpt2_settings(std::filesystem::path(vocab_file).parent_path().string());
  // Both names may be that of one tokenizer.json, which holds both.
  TokenizerJson json = split_tokenizer_json(read_vocabulary(vocab_file), vocab_file);
  const Vocabulary vocabulary =
      vocabulary_of(json.vocabulary, fmt::format("--vocab-file '{}'", vocab_file));
  const std::array<std::string, 256> characters = byte_characters();
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = vocabulary.find(characters[byte]);
    if (found == vocabulary.end()) {
      throw std::runtime_error(fmt::format(
          "--vocab-file '{}' is not a byte-level vocabulary: it has no token for the byte 0x{:02x} "
          "(\"{}\")",
          vocab_file, byte, characters[byte]));
    }
    byte_tokens_[byte] = found->second;
  }
  const auto end = vocabulary.find(kEndOfText);
  if (end == vocabulary.end()) {
    throw std::runtime_error(fmt::format(
        "--vocab-file '{}' has no token \"{}\", which ends a document", vocab_file, kEndOfText));
  }
  eod_ = end->second;
  fill_bytes(vocabulary, characters);
  if (!json.merges) json.merges = read_merge_lines(merge_file);
  MergeTable table = read_merges(*json.merges, vocabulary);
  check_other_pairs(vocab_file, merge_file, json);
  return table;
}

void Gpt2Tokenizer::fill_bytes(const Vocabulary& vocabulary,
                               const std::array<std::string, 256>& characters) {
  std::unordered_map<std::string_view, char> byte_of;
  for (size_t byte = 0; byte < 256; ++byte)
    byte_of.emplace(characters[byte], static_cast<char>(byte));
  int32_t highest = 0;
  for (const auto& [token, id] : vocabulary) highest = std::max(highest, id);
  bytes_.resize(static_cast<size_t>(highest) + 1);
  for (const auto& [token, id] : vocabulary) {
    std::string bytes;
    for (size_t at = 0; at < token.size();) {
      const auto lead = static_cast<unsigned char>(token[at]);
      const size_t length = std::min<size_t>(lead < 0xC0   ? 1
                                             : lead < 0xE0 ? 2
                                             : lead < 0xF0 ? 3
                                                           : 4,
                                             token.size() - at);
      const std::string_view character = std::string_view(token).substr(at, length);
      const auto byte = byte_of.find(character);
      if (byte == byte_of.end()) {
        bytes += character;  // an added token, written as it is
      } else {
        bytes += byte->second;
      }
      at += length;
    }
    bytes_[static_cast<size_t>(id)] = std::move(bytes);
  }
}

MergeTable Gpt2Tokenizer::read_merges(const MergeLines& merges, const Vocabulary& vocabulary) {
  MergeTable table(merges.size());
  int32_t rank = 0;
  for (const MergeLine& line : merges) {
    const auto bad = [&](const std::string& why) {
      return std::runtime_error(fmt::format("{}: {}", line.place, why));
    };
    const auto token_of = [&](const std::string& token) {
      const auto found = vocabulary.find(token);
      if (found == vocabulary.end()) {
        throw bad(fmt::format("\"{}\" is not in the vocabulary: do the two files belong together?",
                              token));
      }
      return found->second;
    };
    const MergeTable::Merge merge = {rank++, token_of(line.left + line.right)};
    if (!table.insert(token_of(line.left), token_of(line.right), merge)) {
      throw bad(fmt::format("the pair \"{} {}\" appears twice", line.left, line.right));
    }
  }
  return table;
}

class Gpt2Encoder : public Tokenizer::Encoder {
 public:
  explicit Gpt2Encoder(const Gpt2Tokenizer& tokenizer)
      : tokenizer_(tokenizer), scanner_(tokenizer.words()), merger_(tokenizer.merges()) {}

  void encode(std::string_view text, std::vector<int32_t>* out) override {
    std::string cleaned;
    if (valid_utf8_prefix(text) != text.size()) {
      cleaned = clean_utf8(text);
      text = cleaned;
    }
    scanner_.start(text);
    for (;;) {
      const std::string_view word = scanner_.next();
      if (word.empty()) return;
      if (cache_.find(word, out)) continue;
      word_.clear();
      for (char c : word) word_.push_back(tokenizer_.byte_token(c));
      merger_.merge(&word_);
      cache_.insert(word, word_.data(), word_.size());
      out->insert(out->end(), word_.begin(), word_.end());
    }
  }

 private:
  const Gpt2Tokenizer& tokenizer_;
  Pretokenizer::Scanner scanner_;
  WordMerger merger_;
  WordCache cache_;
  std::vector<int32_t> word_;
};

std::unique_ptr<Tokenizer::Encoder> Gpt2Tokenizer::make_encoder() const {
  return std::make_unique<Gpt2Encoder>(*this);
}

}  // namespace

std::unique_ptr<Tokenizer> make_gpt2_tokenizer(const std::string& vocab_file,
                                               const std::string& merge_file) {
  return std::make_unique<Gpt2Tokenizer>(vocab_file, merge_file);
}

}  // namespace tally::train
