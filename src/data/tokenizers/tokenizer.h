// Text to token numbers and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tally::train {

// Immutable and safe for many threads; an Encoder (scratch memory and a cache of words) belongs to
// one.
class Tokenizer {
 public:
  class Encoder {
   public:
    virtual ~Encoder() = default;
    // Appends the tokens of `text` to *out.
    virtual void encode(std::string_view text, std::vector<int32_t>* out) = 0;
  };

  virtual ~Tokenizer() = default;
  virtual std::unique_ptr<Encoder> make_encoder() const = 0;
  // One text at once; for much text make an encoder and keep it.
  std::vector<int32_t> encode(std::string_view text) const;
  // The bytes of the tokens, which need not be whole characters. Throws std::out_of_range for a
  // number that is no token.
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;
  // Tokens are 0 ... vocabulary() - 1.
  virtual int64_t vocabulary() const = 0;
  // The token that ends a document. Throws std::runtime_error where the files name none.
  virtual int32_t eod() const = 0;
  // The tokens that belong before and after a document, whatever its text. encode() does not add
  // them.
  virtual std::vector<int32_t> before_text() const { return {}; }
  virtual std::vector<int32_t> after_text() const { return {}; }
  // Whether text is expected as UTF-8. encode() replaces what is not valid by U+FFFD.
  virtual bool utf8() const = 0;
  // The last position > 0 at which `text` can be cut without changing any token, whatever follows
  // `text`: encode(text + rest) == encode(text[0, cut)) + encode(text[cut, end) + rest). 0 when
  // there is none.
  virtual size_t safe_cut(std::string_view text) const = 0;
};

// GPT-2's byte-pair encoding (Radford et al. 2019) as Hugging Face's tokenizers computes it: the
// text is split into words by the pattern below, each word's bytes are joined pair by pair in the
// order of the merge ranks. Special tokens in the text are text.
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Throws std::runtime_error with one sentence when a file is missing or malformed. Both may be the
// same tokenizer.json.
std::unique_ptr<Tokenizer> make_gpt2_tokenizer(const std::string& vocab_file,
                                               const std::string& merge_file);
// Byte-level BPE of a tokenizer.json with its own rules for words and added tokens, which the text
// may have, as tokenizers computes it. Throws std::runtime_error with one sentence that names the
// key of what the file asks for and is not done here.
std::unique_ptr<Tokenizer> make_json_tokenizer(const std::string& path);
// Every byte is its own token, 256 ends a document. Needs no files.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

// Whether a path names Hugging Face's tokenizer.json, which holds vocabulary and merges.
bool is_tokenizer_json(const std::string& path);
// Whether Megatron's name is that of BERT's tokenizer (wordpiece.h).
bool is_wordpiece(const std::string& type);
// Makes a tokenizer by Megatron's name: "GPT2BPETokenizer" (needs both files, or a tokenizer.json
// as the vocabulary), "HuggingFaceTokenizer" (a tokenizer.json of byte-level BPE as the
// vocabulary), "BertWordPieceLowerCase", "BertWordPieceCase" (vocab.txt or tokenizer.json as the
// vocabulary) or "bytes".
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& type, const std::string& vocab_file,
                                          const std::string& merge_file);

}  // namespace tally::train
