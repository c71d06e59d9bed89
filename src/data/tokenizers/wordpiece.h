// BERT's tokenizer: basic tokenization into words (bert_words.h), then WordPiece.
//
// WordPiece cuts a word into the longest piece of the vocabulary that it begins with, then the rest
// into the longest pieces that are written with "##" before them (Schuster and Nakajima 2012; Wu et
// al. 2016). A word of which some rest has no piece, or that has more than 100 characters, becomes
// [UNK] as a whole.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/data/tokenizers/bert_words.h"
#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {

// The tokens that BERT's inputs are made with.
struct BertTokens {
  int32_t pad = 0, unk = 0, cls = 0, sep = 0, mask = 0;
};

class WordPieceTokenizer final : public Tokenizer {
 public:
  // The vocabulary: pieces[n] is token n. Throws std::runtime_error with one sentence that begins
  // with `what` where a special token is missing.
  WordPieceTokenizer(std::vector<std::string> pieces, const BertWordRules& rules,
                     size_t longest_word, const std::string& what);

  std::unique_ptr<Encoder> make_encoder() const override;
  // The pieces, with a blank before those that begin a word: what WordPiece keeps of a text.
  std::string decode(const std::vector<int32_t>& tokens) const override;
  int64_t vocabulary() const override { return static_cast<int64_t>(pieces_.size()); }
  // [SEP]: BERT has no token that ends documents.
  int32_t eod() const override { return tokens_.sep; }
  bool utf8() const override { return true; }
  size_t safe_cut(std::string_view text) const override;

  const BertTokens& tokens() const { return tokens_; }
  const BertWordRules& rules() const { return rules_; }
  // The piece as the vocabulary writes it. Throws std::out_of_range for a number without a token.
  const std::string& piece(int32_t token) const;
  // Appends the pieces of one word, as bert_words() gives them.
  void encode_word(std::string_view word, std::vector<int32_t>* out) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Pieces = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;

  std::vector<std::string> pieces_;
  Pieces first_, further_;    // pieces that begin a word; the others, without their "##"
  size_t longest_piece_ = 0;  // in bytes
  size_t longest_word_;       // in characters
  BertWordRules rules_;
  BertTokens tokens_;
};

// Reads a vocab.txt (a piece per line, numbered from 0) or, by its name, Hugging Face's
// tokenizer.json of a BERT. `lower_case`: the rules of the uncased models, else those of the cased
// ones; a tokenizer.json must agree. Throws std::runtime_error with one sentence that names file
// and line where the file is missing or is not such a vocabulary.
std::unique_ptr<WordPieceTokenizer> make_wordpiece_tokenizer(const std::string& vocab_file,
                                                             bool lower_case);

}  // namespace tally::train
