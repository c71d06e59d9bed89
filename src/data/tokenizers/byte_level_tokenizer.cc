// Byte-level byte-pair encoding, GPT-2's and that of other tokenizer.json: files, words, cache.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <unordered_map>

#include "src/data/text/json_fault.h"
#include "src/data/text/unicode_text.h"
#include "src/data/text/utf8.h"
#include "src/data/tokenizers/added_tokens.h"
#include "src/data/tokenizers/byte_level_rules.h"
#include "src/data/tokenizers/json_settings.h"
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

std::string utf8_of(uint32_t code) {  // for codes below 0x800, which the byte map uses
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

// `what` names the kind of file that it should be.
nlohmann::json read_json(const std::string& path, const char* what) {
  try {
    return nlohmann::json::parse(read_tokenizer_file(path, "--vocab-file"));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(
        fmt::format("--vocab-file '{}' is not {}: {}", path, what, json_fault(error)));
  }
}

// The bytes that a token of byte characters stands for. False: another character is in it.
bool bytes_of(const std::string& token, const std::unordered_map<std::string_view, char>& byte_of,
              std::string* bytes) {
  for (size_t at = 0; at < token.size();) {
    const size_t length = static_cast<unsigned char>(token[at]) < 0xC0 ? 1 : 2;
    const auto byte = byte_of.find(std::string_view(token).substr(at, length));
    if (byte == byte_of.end()) return false;
    *bytes += byte->second;
    at += length;
  }
  return true;
}

// The token of each byte.
std::array<int32_t, 256> byte_tokens_of(const Vocabulary& vocabulary, const std::string& what) {
  const std::array<std::string, 256> characters = byte_characters();
  std::array<int32_t, 256> tokens{};
  for (size_t byte = 0; byte < 256; ++byte) {
    const auto found = vocabulary.find(characters[byte]);
    if (found == vocabulary.end()) {
      throw std::runtime_error(fmt::format(
          "{} is not a byte-level vocabulary: it has no token for the byte 0x{:02x} (\"{}\")", what,
          byte, characters[byte]));
    }
    tokens[byte] = found->second;
  }
  return tokens;
}

// The contents of the files, checked.
struct ByteLevelParts {
  std::string what;       // "--vocab-file 'PATH'"
  Vocabulary vocabulary;  // the model's; GPT-2's with the added tokens
  std::array<int32_t, 256> byte_tokens{};
  MergeLines merges;
  ByteLevelRules rules;
  std::optional<int32_t> end;  // the token that ends a document
};

MergeTable merge_table(const MergeLines& merges, const Vocabulary& vocabulary) {
  MergeTable table(merges.size());
  int32_t rank = 0;
  for (const MergeLine& line : merges) {
    const auto bad = [&](const std::string& why) {
      return std::runtime_error(fmt::format("{}: {}", line.location, why));
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

// The numbers must be those that tokenizers gives the added tokens, whatever the file says.
void check_added_numbers(const ByteLevelParts& parts) {
  const auto size = static_cast<int64_t>(parts.vocabulary.size());
  int64_t highest = -1;  // the highest added token so far
  for (const AddedToken& token : parts.rules.added) {
    const auto known = parts.vocabulary.find(token.content);
    const int64_t given =
        known != parts.vocabulary.end() ? known->second : std::max(size, highest + 1);
    if (given != token.id)
      throw std::runtime_error(
          fmt::format("{}: the added token \"{}\" has the number {}, and tokenizers gives it {}",
                      parts.what, token.content, token.id, given));
    highest = std::max(highest, given);
  }
}

std::vector<AddedToken> tokens_with(const ByteLevelRules& rules, bool normalized) {
  std::vector<AddedToken> tokens;
  // tokenizers takes a special one first of two that are the same in normalized text.
  for (const bool special : {true, false})
    for (const AddedToken& token : rules.added)
      if (token.normalized == normalized && token.special == special) tokens.push_back(token);
  if (normalized && rules.nfc)
    for (AddedToken& token : tokens) token.content = nfc_of(token.content);
  return tokens;
}

class ByteLevelTokenizer : public Tokenizer {
 public:
  explicit ByteLevelTokenizer(ByteLevelParts parts)
      : rules_(std::move(parts.rules)),
        words_(rules_.steps, rules_.nfc),
        exact_(tokens_with(rules_, false)),
        normalized_(tokens_with(rules_, true)),
        byte_tokens_(parts.byte_tokens),
        merges_(merge_table(parts.merges, parts.vocabulary)),
        what_(std::move(parts.what)),
        end_(parts.end) {
    read_vocabulary(parts.vocabulary);
    read_added(parts.vocabulary);
  }

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
  int32_t eod() const override {
    if (end_) return *end_;
    throw std::runtime_error(
        fmt::format("{}: no setting says which token ends a document: name the eos_token in a "
                    "tokenizer_config.json beside it",
                    what_));
  }
  std::vector<int32_t> before_text() const override { return rules_.before; }
  std::vector<int32_t> after_text() const override { return rules_.after; }
  bool utf8() const override { return true; }
  size_t safe_cut(std::string_view text) const override;

  const ByteLevelRules& rules() const { return rules_; }
  const Pretokenizer& words() const { return words_; }
  const AddedTokens& exact_tokens() const { return exact_; }
  const AddedTokens& normalized_tokens() const { return normalized_; }
  const MergeTable& merges() const { return merges_; }
  int32_t byte_token(char c) const { return byte_tokens_[static_cast<unsigned char>(c)]; }
  // The token that is this word; null where there is none.
  const int32_t* whole_word(std::string_view word) const {
    const auto found = whole_words_.find(word);
    return found == whole_words_.end() ? nullptr : &found->second;
  }

 private:
  void read_vocabulary(const Vocabulary& vocabulary);
  void read_added(const Vocabulary& vocabulary);

  const ByteLevelRules rules_;
  const Pretokenizer words_;
  const AddedTokens exact_, normalized_;
  const std::array<int32_t, 256> byte_tokens_;
  const MergeTable merges_;
  const std::string what_;
  const std::optional<int32_t> end_;
  std::vector<std::string> bytes_;                             // each token's
  std::unordered_map<std::string_view, int32_t> whole_words_;  // used with ignore_merges
};

void ByteLevelTokenizer::read_vocabulary(const Vocabulary& vocabulary) {
  const std::array<std::string, 256> characters = byte_characters();
  std::unordered_map<std::string_view, char> byte_of;
  for (size_t byte = 0; byte < 256; ++byte)
    byte_of.emplace(characters[byte], static_cast<char>(byte));
  int32_t highest = 0;
  for (const auto& [token, id] : vocabulary) highest = std::max(highest, id);
  for (const AddedToken& token : rules_.added) highest = std::max(highest, token.id);
  bytes_.resize(static_cast<size_t>(highest) + 1);
  for (const auto& [token, id] : vocabulary) {
    std::string& bytes = bytes_[static_cast<size_t>(id)];
    const bool whole = bytes_of(token, byte_of, &bytes);
    if (!whole) bytes = token;  // an added token, written as it is
    if (whole && rules_.ignore_merges) whole_words_.emplace(bytes, id);
  }
}

void ByteLevelTokenizer::read_added(const Vocabulary& vocabulary) {
  for (const AddedToken& token : rules_.added) {
    std::string& bytes = bytes_[static_cast<size_t>(token.id)];
    if (vocabulary.count(token.content) == 0 && !bytes.empty())
      throw std::runtime_error(
          fmt::format("{}: the added token \"{}\" has the number {}, which another token has",
                      what_, token.content, token.id));
    bytes = token.content;
  }
  for (const std::vector<int32_t>* around : {&rules_.before, &rules_.after})
    for (const int32_t id : *around)
      if (static_cast<size_t>(id) >= bytes_.size() || bytes_[static_cast<size_t>(id)].empty())
        throw std::runtime_error(fmt::format(
            "{}: its post_processor puts {} around a text, which is not a token", what_, id));
}

size_t ByteLevelTokenizer::safe_cut(std::string_view text) const {
  if (exact_.single_words() || normalized_.single_words()) return 0;
  // Tokens in the normalized text are not to be seen in this one.
  if (rules_.nfc && !normalized_.empty()) return 0;
  text = text.substr(0, valid_utf8_prefix(text));
  for (size_t cut = 0; (cut = words_.safe_cut(text)) > 0; text = text.substr(0, cut))
    if (exact_.may_cut(text, cut) && normalized_.may_cut(text, cut)) return cut;
  return 0;
}

class ByteLevelEncoder : public Tokenizer::Encoder {
 public:
  explicit ByteLevelEncoder(const ByteLevelTokenizer& tokenizer)
      : tokenizer_(tokenizer), scanner_(tokenizer.words()), merger_(tokenizer.merges()) {}

  void encode(std::string_view text, std::vector<int32_t>* out) override {
    std::string cleaned;
    if (valid_utf8_prefix(text) != text.size()) {
      cleaned = clean_utf8(text);
      text = cleaned;
    }
    const auto put = [&](int32_t token) { out->push_back(token); };
    tokenizer_.exact_tokens().split(
        text,
        [&](std::string_view part) {
          std::string changed;
          if (tokenizer_.rules().nfc && !is_nfc(part)) {
            changed = nfc_of(part);
            part = changed;
          }
          tokenizer_.normalized_tokens().split(
              part, [&](std::string_view words) { encode_words(words, out); }, put);
        },
        put);
  }

 private:
  void encode_words(std::string_view text, std::vector<int32_t>* out) {
    scanner_.start(text);
    for (;;) {
      const std::string_view word = scanner_.next();
      if (word.empty()) return;
      if (cache_.find(word, out)) continue;
      word_.clear();
      if (const int32_t* whole = tokenizer_.whole_word(word)) {
        word_.push_back(*whole);
      } else {
        for (char c : word) word_.push_back(tokenizer_.byte_token(c));
        merger_.merge(&word_);
      }
      cache_.insert(word, word_.data(), word_.size());
      out->insert(out->end(), word_.begin(), word_.end());
    }
  }

  const ByteLevelTokenizer& tokenizer_;
  Pretokenizer::Scanner scanner_;
  WordMerger merger_;
  WordCache cache_;
  std::vector<int32_t> word_;
};

std::unique_ptr<Tokenizer::Encoder> ByteLevelTokenizer::make_encoder() const {
  return std::make_unique<ByteLevelEncoder>(*this);
}

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

}  // namespace

std::unique_ptr<Tokenizer> make_gpt2_tokenizer(const std::string& vocab_file,
                                               const std::string& merge_file) {
  check_gpt2_settings(folder_of(vocab_file));
  ByteLevelParts parts;
  parts.what = fmt::format("--vocab-file '{}'", vocab_file);
  parts.rules = gpt2_rules();
  // Both names may be that of one tokenizer.json, which holds both.
  TokenizerJson json = split_tokenizer_json(
      read_json(vocab_file, "a GPT-2 vocabulary (a JSON object of token: number)"), vocab_file);
  parts.vocabulary = vocabulary_of(json.vocabulary, parts.what);
  parts.byte_tokens = byte_tokens_of(parts.vocabulary, parts.what);
  const auto end = parts.vocabulary.find(kEndOfText);
  if (end == parts.vocabulary.end()) {
    throw std::runtime_error(
        fmt::format("{} has no token \"{}\", which ends a document", parts.what, kEndOfText));
  }
  parts.end = end->second;
  if (!json.merges) json.merges = read_merge_lines(merge_file);
  parts.merges = *json.merges;
  auto tokenizer = std::make_unique<ByteLevelTokenizer>(std::move(parts));
  check_other_pairs(vocab_file, merge_file, json);
  return tokenizer;
}

std::unique_ptr<Tokenizer> make_json_tokenizer(const std::string& path) {
  if (!is_tokenizer_json(path))
    throw std::runtime_error(fmt::format(
        "--vocab-file '{}': HuggingFaceTokenizer takes a file named tokenizer.json", path));
  ByteLevelParts parts;
  parts.what = fmt::format("--vocab-file '{}'", path);
  const nlohmann::json json = read_json(path, "a tokenizer.json");
  if (!json.is_object())
    throw std::runtime_error(
        fmt::format("--vocab-file '{}' is not a tokenizer.json: it holds no object", path));
  parts.rules = read_byte_level_rules(json, path);
  parts.end = check_json_settings(folder_of(path), parts.rules);
  const TokenizerJson pairs = pairs_of_tokenizer_json(json, path);
  parts.vocabulary = vocabulary_of(pairs.vocabulary, parts.what);
  parts.byte_tokens = byte_tokens_of(parts.vocabulary, parts.what);
  parts.merges = *pairs.merges;
  check_added_numbers(parts);
  auto tokenizer = std::make_unique<ByteLevelTokenizer>(std::move(parts));
  check_other_pairs(path, path, pairs);
  return tokenizer;
}

}  // namespace tally::train
