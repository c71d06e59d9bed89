// The files of a BERT vocabulary: vocab.txt and tokenizer.json.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/text/json_fault.h"
#include "src/data/text/utf8.h"
#include "src/data/tokenizers/tokenizer_json.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestWord = 100;  // characters

std::vector<std::string> read_vocab_txt(const std::string& path) {
  const std::string text = read_tokenizer_file(path, "--vocab-file");
  std::vector<std::string> pieces;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string piece = text.substr(begin, end - begin);
    if (!piece.empty() && piece.back() == '\r') piece.pop_back();
    const size_t valid = valid_utf8_prefix(piece);
    if (valid != piece.size())
      throw std::runtime_error(
          fmt::format("--vocab-file {}:{}:{}: this byte is not valid UTF-8: a vocab.txt has one "
                      "piece of text per line",
                      path, pieces.size() + 1, valid + 1));
    pieces.push_back(std::move(piece));
    begin = end + 1;
  }
  return pieces;
}

// One value of a tokenizer.json, `fallback` where it is absent or null.
bool flag_of(const Json& json, const char* key, bool fallback) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_boolean() ? fallback : found->get<bool>();
}

class BertJson {
 public:
  BertJson(const Json& json, const std::string& path) : json_(json), path_(path) {}

  std::unique_ptr<WordPieceTokenizer> make(bool lower_case) const {
    const Json& model = object(json_, "model");
    if (model.value("type", Json("WordPiece")) != "WordPiece")
      throw refuse(fmt::format("its model is {}, not WordPiece", model["type"].dump()));
    if (model.value("continuing_subword_prefix", Json("##")) != "##")
      throw refuse("its pieces are not continued by \"##\"");
    const Json longest = model.value("max_input_chars_per_word", Json(kLongestWord));
    if (!longest.is_number_unsigned())
      throw refuse(fmt::format("\"max_input_chars_per_word\" is {}", longest.dump()));
    return std::make_unique<WordPieceTokenizer>(pieces(model), rules(lower_case),
                                                longest.get<size_t>(),
                                                fmt::format("--vocab-file '{}'", path_));
  }

 private:
  std::runtime_error refuse(const std::string& why) const {
    return std::runtime_error(
        fmt::format("--vocab-file '{}' is not a tokenizer of BERT's kind: {}", path_, why));
  }

  const Json& object(const Json& in, const char* key) const {
    const auto found = in.find(key);
    if (found == in.end() || !found->is_object())
      throw refuse(fmt::format("it has no \"{}\"", key));
    return *found;
  }

  BertWordRules rules(bool lower_case) const {
    const Json& normalizer = object(json_, "normalizer");
    if (normalizer.value("type", Json()) != "BertNormalizer")
      throw refuse("its normalizer is not BertNormalizer");
    if (object(json_, "pre_tokenizer").value("type", Json()) != "BertPreTokenizer")
      throw refuse("its pre_tokenizer is not BertPreTokenizer");
    BertWordRules rules;
    rules.clean_text = flag_of(normalizer, "clean_text", true);
    rules.space_cjk = flag_of(normalizer, "handle_chinese_chars", true);
    rules.lower_case = flag_of(normalizer, "lowercase", true);
    rules.strip_accents = flag_of(normalizer, "strip_accents", rules.lower_case);
    if (rules.lower_case != lower_case)
      throw std::runtime_error(
          fmt::format("--vocab-file '{}' is the tokenizer of {} model: give --tokenizer-type {}",
                      path_, rules.lower_case ? "an uncased" : "a cased",
                      rules.lower_case ? "BertWordPieceLowerCase" : "BertWordPieceCase"));
    return rules;
  }

  std::vector<std::string> pieces(const Json& model) const {
    std::vector<std::string> pieces;
    std::vector<bool> there;
    const size_t most = object(model, "vocab").size() + json_.value("added_tokens", Json()).size();
    const auto add = [&](const std::string& piece, const Json& number) {
      if (!number.is_number_unsigned() || number.get<uint64_t>() >= most)
        throw refuse(fmt::format("token \"{}\" has the number {}, and there are {} tokens", piece,
                                 number.dump(), most));
      const auto at = number.get<size_t>();
      if (at >= pieces.size()) {
        pieces.resize(at + 1);
        there.resize(at + 1);
      }
      if (there[at] && pieces[at] != piece)
        throw refuse(
            fmt::format("tokens \"{}\" and \"{}\" both have the number {}", pieces[at], piece, at));
      pieces[at] = piece;
      there[at] = true;
    };
    for (const auto& [piece, number] : model["vocab"].items()) add(piece, number);
    for (const Json& added : json_.value("added_tokens", Json::array())) {
      if (!added.is_object() || !added.value("content", Json()).is_string())
        throw refuse("an added token has no content");
      add(added["content"].get<std::string>(), added.value("id", Json()));
    }
    for (size_t at = 0; at < there.size(); ++at) {
      if (!there[at]) throw refuse(fmt::format("no token has the number {}", at));
    }
    return pieces;
  }

  const Json& json_;
  const std::string& path_;
};

}  // namespace

std::unique_ptr<WordPieceTokenizer> make_wordpiece_tokenizer(const std::string& vocab_file,
                                                             bool lower_case) {
  refuse_added_tokens(vocab_file, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"});
  if (!is_tokenizer_json(vocab_file)) {
    BertWordRules rules;
    rules.lower_case = rules.strip_accents = lower_case;
    return std::make_unique<WordPieceTokenizer>(read_vocab_txt(vocab_file), rules, kLongestWord,
                                                fmt::format("--vocab-file '{}'", vocab_file));
  }
  Json json;
  try {
    json = Json::parse(read_tokenizer_file(vocab_file, "--vocab-file"));
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format("--vocab-file '{}' is not a tokenizer.json: {}",
                                         vocab_file, json_fault(error)));
  }
  if (!json.is_object())
    throw std::runtime_error(
        fmt::format("--vocab-file '{}' is not a tokenizer.json: it holds no object", vocab_file));
  return BertJson(json, vocab_file).make(lower_case);
}

}  // namespace tally::train
