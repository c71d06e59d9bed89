// The files of a BERT vocabulary: vocab.txt and tokenizer.json.
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/text/json_fault.h"
#include "src/data/tokenizers/other_vocabulary.h"
#include "src/data/tokenizers/tokenizer_json.h"
#include "src/data/tokenizers/tokenizer_settings.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {
namespace {

using Json = nlohmann::json;

class BertJson {
 public:
  BertJson(const Json& json, const std::string& path) : json_(json), path_(path) {}

  // Token n is pieces()[n].
  std::vector<std::string> pieces() const {
    object(json_, "normalizer");
    object(json_, "pre_tokenizer");
    return pieces_of(object(json_, "model"));
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

  std::vector<std::string> pieces_of(const Json& model) const {
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

std::vector<std::string> read_tokenizer_json(const std::string& path) {
  Json json;
  try {
    json = Json::parse(read_tokenizer_file(path, "--vocab-file"));
  } catch (const Json::exception& error) {
    throw std::runtime_error(
        fmt::format("--vocab-file '{}' is not a tokenizer.json: {}", path, json_fault(error)));
  }
  if (!json.is_object())
    throw std::runtime_error(
        fmt::format("--vocab-file '{}' is not a tokenizer.json: it holds no object", path));
  return BertJson(json, path).pieces();
}

}  // namespace

std::unique_ptr<WordPieceTokenizer> make_wordpiece_tokenizer(const std::string& vocab_file,
                                                             bool lower_case) {
  const WordSettings settings =
      word_settings(std::filesystem::path(vocab_file).parent_path().string(), lower_case);
  if (settings.rules.lower_case != lower_case)
    throw std::runtime_error(
        fmt::format("--vocab-file '{}' is the tokenizer of {} model: give --tokenizer-type {}",
                    vocab_file, lower_case ? "a cased" : "an uncased",
                    lower_case ? "BertWordPieceCase" : "BertWordPieceLowerCase"));
  std::vector<std::string> pieces =
      is_tokenizer_json(vocab_file) ? read_tokenizer_json(vocab_file) : read_vocab_txt(vocab_file);
  check_other_pieces(vocab_file);
  return std::make_unique<WordPieceTokenizer>(std::move(pieces), settings.rules,
                                              settings.longest_word,
                                              fmt::format("--vocab-file '{}'", vocab_file));
}

}  // namespace tally::train
