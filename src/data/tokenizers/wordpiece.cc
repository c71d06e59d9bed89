#include "src/data/tokenizers/wordpiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "src/data/text/utf8.h"
#include "src/data/tokenizers/word_cache.h"

namespace tally::train {
namespace {

constexpr std::string_view kContinues = "##";

bool continues(std::string_view piece) {
  return piece.size() > kContinues.size() && piece.substr(0, kContinues.size()) == kContinues;
}

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

// White space that the basic tokenization keeps as such, in ASCII.
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

}  // namespace

WordPieceTokenizer::WordPieceTokenizer(std::vector<std::string> pieces, const BertWordRules& rules,
                                       size_t longest_word, const std::string& what)
    : pieces_(std::move(pieces)), longest_word_(longest_word), rules_(rules) {
  for (size_t token = 0; token < pieces_.size(); ++token) {
    std::string_view piece = pieces_[token];
    Pieces& known = continues(piece) ? further_ : first_;
    if (continues(piece)) piece.remove_prefix(kContinues.size());
    longest_piece_ = std::max(longest_piece_, piece.size());
    known[std::string(piece)] = static_cast<int32_t>(token);
  }
  const auto special = [&](const char* name) {
    const auto found = first_.find(std::string_view(name));
    if (found == first_.end())
      throw std::runtime_error(
          fmt::format("{} has no token \"{}\", which BERT's inputs need: give the vocab.txt or "
                      "tokenizer.json of a BERT model",
                      what, name));
    return found->second;
  };
  tokens_ = {special("[PAD]"), special("[UNK]"), special("[CLS]"), special("[SEP]"),
             special("[MASK]")};
}

const std::string& WordPieceTokenizer::piece(int32_t token) const {
  if (token < 0 || static_cast<size_t>(token) >= pieces_.size())
    throw std::out_of_range(
        fmt::format("{} is not a token of this vocabulary of {}", token, pieces_.size()));
  return pieces_[static_cast<size_t>(token)];
}

std::string WordPieceTokenizer::decode(const std::vector<int32_t>& tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    const std::string& next = piece(token);
    if (continues(next)) {
      text += next.substr(kContinues.size());
    } else {
      if (!text.empty()) text += ' ';
      text += next;
    }
  }
  return text;
}

void WordPieceTokenizer::encode_word(std::string_view word, std::vector<int32_t>* out) const {
  const size_t before = out->size();
  if (word.size() > longest_word_ &&
      static_cast<size_t>(std::count_if(word.begin(), word.end(), begins_character)) >
          longest_word_) {
    out->push_back(tokens_.unk);
    return;
  }
  for (size_t begin = 0; begin < word.size();) {
    const Pieces& known = begin == 0 ? first_ : further_;
    size_t end = std::min(word.size(), begin + longest_piece_);
    auto found = known.end();
    for (; end > begin; --end) {
      if (end < word.size() && !begins_character(word[end])) continue;
      found = known.find(word.substr(begin, end - begin));
      if (found != known.end()) break;
    }
    if (end == begin) {
      out->resize(before);
      out->push_back(tokens_.unk);
      return;
    }
    out->push_back(found->second);
    begin = end;
  }
}

// No rule looks over white space, so a text can be cut before a blank.
size_t WordPieceTokenizer::safe_cut(std::string_view text) const {
  for (size_t at = text.size(); at-- > 1;) {
    if (is_blank(text[at])) return at;
  }
  return 0;
}

namespace {

class WordPieceEncoder final : public Tokenizer::Encoder {
 public:
  explicit WordPieceEncoder(const WordPieceTokenizer& tokenizer)
      : tokenizer_(tokenizer), splitter_(tokenizer.rules()) {}

  void encode(std::string_view text, std::vector<int32_t>* out) override {
    std::string cleaned;
    if (valid_utf8_prefix(text) != text.size()) {
      cleaned = clean_utf8(text);
      text = cleaned;
    }
    // The text between two blanks is normalized and split by itself, or found in the cache.
    for (size_t begin = 0; begin < text.size();) {
      size_t end = begin;
      while (end < text.size() && !is_blank(text[end])) ++end;
      if (end > begin) encode_part(text.substr(begin, end - begin), out);
      begin = end + 1;
    }
  }

 private:
  void encode_part(std::string_view part, std::vector<int32_t>* out) {
    if (cache_.find(part, out)) return;
    const size_t before = out->size();
    splitter_.split(part, [&](std::string_view word) { tokenizer_.encode_word(word, out); });
    cache_.insert(part, out->data() + before, out->size() - before);
  }

  const WordPieceTokenizer& tokenizer_;
  BertWordSplitter splitter_;
  WordCache cache_;
};

}  // namespace

std::unique_ptr<Tokenizer::Encoder> WordPieceTokenizer::make_encoder() const {
  return std::make_unique<WordPieceEncoder>(*this);
}

}  // namespace tally::train
