#include "src/data/tokenizers/tokenizer.h"

#include <fmt/format.h>

#include <stdexcept>

#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out;
  make_encoder()->encode(text, &out);
  return out;
}

namespace {

constexpr int32_t kByteEod = 256;

class ByteTokenizer : public Tokenizer {
 public:
  class ByteEncoder : public Encoder {
   public:
    void encode(std::string_view text, std::vector<int32_t>* out) override {
      // No reserve(): asked for again with every small text, it would copy all of them each time.
      for (char c : text) out->push_back(static_cast<unsigned char>(c));
    }
  };

  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<ByteEncoder>(); }
  std::string decode(const std::vector<int32_t>& tokens) const override {
    std::string text;
    for (int32_t token : tokens) {
      if (token < 0 || token > kByteEod) {
        throw std::out_of_range(
            fmt::format("{} is not a token of the byte tokenizer: they are 0 to 256", token));
      }
      if (token != kByteEod) text += static_cast<char>(token);
    }
    return text;
  }
  int64_t vocabulary() const override { return kByteEod + 1; }
  int32_t eod() const override { return kByteEod; }
  bool utf8() const override { return false; }
  size_t safe_cut(std::string_view text) const override { return text.size(); }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

bool is_tokenizer_json(const std::string& path) {
  const std::string name = "tokenizer.json";
  const size_t slash = path.rfind('/');
  return path.substr(slash == std::string::npos ? 0 : slash + 1) == name;
}

bool is_wordpiece(const std::string& type) {
  return type == "BertWordPieceLowerCase" || type == "BertWordPieceCase";
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& type, const std::string& vocab_file,
                                          const std::string& merge_file) {
  if (type == "bytes") return make_byte_tokenizer();
  if (is_wordpiece(type)) {
    if (vocab_file.empty()) {
      throw std::runtime_error(fmt::format(
          "{} needs --vocab-file: give the vocab.txt or tokenizer.json of a BERT model", type));
    }
    return make_wordpiece_tokenizer(vocab_file, type == "BertWordPieceLowerCase");
  }
  if (type == "HuggingFaceTokenizer") {
    if (vocab_file.empty() || (!merge_file.empty() && merge_file != vocab_file))
      throw std::runtime_error(
          fmt::format("{} takes --vocab-file alone: give the model's tokenizer.json", type));
    return make_json_tokenizer(vocab_file);
  }
  if (type != "GPT2BPETokenizer") {
    throw std::runtime_error(
        fmt::format("--tokenizer-type '{}' is not known: choose GPT2BPETokenizer, "
                    "HuggingFaceTokenizer, BertWordPieceLowerCase, BertWordPieceCase or bytes",
                    type));
  }
  if (merge_file.empty() && is_tokenizer_json(vocab_file))
    return make_gpt2_tokenizer(vocab_file, vocab_file);
  if (vocab_file.empty() || merge_file.empty()) {
    throw std::runtime_error(
        fmt::format("GPT2BPETokenizer needs {}: give --vocab-file vocab.json and --merge-file "
                    "merges.txt of the "
                    "model, or choose --tokenizer-type bytes",
                    vocab_file.empty() ? "--vocab-file" : "--merge-file"));
  }
  return make_gpt2_tokenizer(vocab_file, merge_file);
}

}  // namespace tally::train
