#include "src/data/tokenizers/other_vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "src/data/text/json_fault.h"
#include "src/data/text/utf8.h"
#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The numbers of a file's tokens.
struct Numbers {
  std::string path;
  Json of;                      // token: number
  std::set<std::string> added;  // tokens that the file states beside its vocabulary
};

std::runtime_error contradiction(const std::string& path, const std::string& other,
                                 const std::string& how) {
  return std::runtime_error(
      fmt::format("'{}' and '{}' are two vocabularies that differ: {}: remove the one that the "
                  "model was not trained with",
                  path, other, how));
}

Json parsed(const std::string& path) {
  Json json;
  try {
    json = Json::parse(read_tokenizer_file(path, "the vocabulary"));
  } catch (const Json::exception& error) {
    throw std::runtime_error(fmt::format(
        "'{}' is not a vocabulary: {}: get the whole file, or remove it", path, json_fault(error)));
  }
  if (json.is_object()) return json;
  throw std::runtime_error(fmt::format(
      "'{}' is not a vocabulary: it holds no JSON object: get the whole file, or remove it", path));
}

// The numbers of a tokenizer.json. Null where it has no vocabulary.
Numbers numbers_of_whole(const std::string& path, const Json& whole) {
  Numbers numbers{path, nullptr, {}};
  const Json model = whole.value("model", Json());
  if (!model.is_object() || !model.value("vocab", Json()).is_object()) return numbers;
  numbers.of = model["vocab"];
  for (const Json& token : whole.value("added_tokens", Json::array())) {
    if (!token.is_object() || !token.value("content", Json()).is_string()) continue;
    const auto text = token["content"].get<std::string>();
    if (numbers.of.contains(text)) continue;
    numbers.of[text] = token.value("id", Json());
    numbers.added.insert(text);
  }
  return numbers;
}

Numbers numbers_of_lines(const std::string& path) {
  Numbers numbers{path, Json::object(), {}};
  const std::vector<std::string> pieces = read_vocab_txt(path);
  for (size_t n = 0; n < pieces.size(); ++n)
    if (!pieces[n].empty()) numbers.of[pieces[n]] = n;  // no word has an empty piece
  return numbers;
}

// A token that one file adds may be missing in the other.
void check_contained(const Numbers& one, const Numbers& other) {
  for (const auto& [token, number] : one.of.items()) {
    const auto found = other.of.find(token);
    if (found == other.of.end() && one.added.count(token) == 0)
      throw contradiction(one.path, other.path,
                          fmt::format("the second has no token \"{}\"", token));
    if (found != other.of.end() && *found != number)
      throw contradiction(one.path, other.path,
                          fmt::format("token \"{}\" has the numbers {} and {}", token,
                                      number.dump(), found->dump()));
  }
}

void check_same(const Numbers& used, const Numbers& other) {
  if (other.of.is_null()) return;
  check_contained(used, other);
  check_contained(other, used);
}

void check_same(const std::string& path, const MergeLines& used, const std::string& other_path,
                const MergeLines& other) {
  for (size_t n = 0; n < std::min(used.size(), other.size()); ++n) {
    if (used[n].left == other[n].left && used[n].right == other[n].right) continue;
    throw contradiction(path, other_path,
                        fmt::format("merge {} is \"{} {}\" and \"{} {}\"", n + 1, used[n].left,
                                    used[n].right, other[n].left, other[n].right));
  }
  if (used.size() != other.size())
    throw contradiction(path, other_path,
                        fmt::format("they have {} and {} merges", used.size(), other.size()));
}

bool is_other(const fs::path& path, const std::string& used) {
  return fs::exists(path) && !fs::equivalent(path, used);
}

}  // namespace

void check_other_pairs(const std::string& vocab_file, const std::string& merge_file,
                       const TokenizerJson& used) {
  Numbers numbers{vocab_file, used.vocabulary, {}};
  if (is_tokenizer_json(vocab_file)) numbers = numbers_of_whole(vocab_file, parsed(vocab_file));
  for (const fs::path& folder :
       std::set<fs::path>{fs::path(vocab_file).parent_path(), fs::path(merge_file).parent_path()}) {
    const fs::path whole = folder / "tokenizer.json", vocab = folder / "vocab.json",
                   merges = folder / "merges.txt";
    if (is_other(whole, vocab_file)) {
      const Json json = parsed(whole.string());
      const TokenizerJson parts = split_tokenizer_json(json, whole.string());
      check_same(numbers, numbers_of_whole(whole.string(), json));
      if (parts.merges) check_same(merge_file, *used.merges, whole.string(), *parts.merges);
    }
    if (!is_tokenizer_json(vocab_file)) continue;
    if (is_other(vocab, vocab_file))
      check_same(numbers, {vocab.string(), parsed(vocab.string()), {}});
    if (is_other(merges, merge_file))
      check_same(merge_file, *used.merges, merges.string(), read_merge_lines(merges.string()));
  }
}

void check_other_pieces(const std::string& vocab_file) {
  const fs::path folder = fs::path(vocab_file).parent_path();
  const fs::path whole = folder / "tokenizer.json", lines = folder / "vocab.txt";
  if (!is_tokenizer_json(vocab_file)) {
    if (is_other(whole, vocab_file))
      check_same(numbers_of_lines(vocab_file),
                 numbers_of_whole(whole.string(), parsed(whole.string())));
  } else if (is_other(lines, vocab_file)) {
    check_same(numbers_of_whole(vocab_file, parsed(vocab_file)), numbers_of_lines(lines.string()));
  }
}

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

}  // namespace tally::train
