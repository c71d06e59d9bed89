// BERT's tokenizer: by hand; peer_wordpiece_test.py compares it with Hugging Face's.
#include "src/data/tokenizers/wordpiece.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

const char* const kVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\naffable\n,\nun##\n##"
    "a\n\xC3\xA9t\xC3\xA9\n"
    "ete\n\xE4\xB8\xAD\n";

using Tokens = std::vector<int32_t>;

nlohmann::json tokenizer_json() {
  nlohmann::json vocab;
  int32_t number = 0;
  for (const char* piece : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "un", "##aff"})
    vocab[piece] = number++;
  vocab.erase("[MASK]");  // as an added token instead
  return {
      {"model", {{"type", "WordPiece"}, {"vocab", vocab}, {"max_input_chars_per_word", 6}}},
      {"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
      {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
      {"added_tokens", {{{"id", 0}, {"content", "[PAD]"}}, {{"id", 4}, {"content", "[MASK]"}}}}};
}

}  // namespace

TEST_CASE("the longest pieces first; a word without pieces is [UNK] as a whole") {
  const TempDir dir;
  const auto bert = make_wordpiece_tokenizer(dir.write("vocab.txt", kVocabulary), true);
  CHECK(bert->vocabulary() == 15);
  CHECK(bert->encode("UNaffable, unaffx affable") == Tokens{5, 6, 7, 9, 1, 8});
  CHECK(bert->encode("\xC3\x89T\xC3\x89\xE4\xB8\xAD"
                     "un") == Tokens{13, 14, 5});
  CHECK(bert->encode("[CLS]") == Tokens{1, 1, 1});  // special tokens in a text are text
  CHECK(bert->encode("un\xFF") == Tokens{5});       // not UTF-8: U+FFFD, which is removed
  CHECK(bert->decode({5, 6, 7, 9}) == "unaffable ,");
  CHECK(bert->eod() == bert->tokens().sep);
  CHECK(bert->tokens().mask == 4);
  CHECK_THROWS_AS(bert->decode({15}), std::out_of_range);
}

TEST_CASE("a cased model keeps accents and case") {
  const TempDir dir;
  const auto bert = make_wordpiece_tokenizer(dir.write("vocab.txt", kVocabulary), false);
  CHECK(bert->encode("\xC3\xA9t\xC3\xA9 ete \xC3\x89t\xC3\xA9") == Tokens{12, 13, 1});
}

TEST_CASE("lower case with accents, and texts that are not cleaned") {
  BertWordRules rules;
  rules.strip_accents = false;
  using Words = std::vector<std::string>;
  CHECK(bert_words("\xC4\xB0\xC3\x84 \xCE\xA3", rules) == Words{"i\xCC\x87\xC3\xA4", "\xCF\x83"});
  CHECK(bert_words("a\x01 b\xE2\x80\x8B", rules) == Words{"a", "b"});
  rules.clean_text = false;
  CHECK(bert_words("a\x01 \xE2\x80\x8B", rules) == Words{"a\x01", "\xE2\x80\x8B"});
  // A NUL is a character of its word, as others are.
  const std::string nul = std::string("w\0x", 3);
  CHECK(bert_words(nul + " y", rules) == Words{nul, "y"});
  CHECK(bert_words(nul + "\xC3\xA4,\xEF\xB7\x90", rules) ==
        Words{nul + "\xC3\xA4", ",", "\xEF\xB7\x90"});
  rules.space_cjk = false;
  CHECK(bert_words("\xE4\xB8\xAD\xE4\xB8\xAD", rules) == Words{"\xE4\xB8\xAD\xE4\xB8\xAD"});
}

TEST_CASE("words of more than 100 characters are [UNK], however many bytes they have") {
  const TempDir dir;
  const auto bert = make_wordpiece_tokenizer(
      dir.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n\xC3\x9F\n##\xC3\x9F\n"), true);
  std::string word;
  for (int i = 0; i < 100; ++i) word += "\xC3\x9F";
  CHECK(bert->encode(word).size() == 100);
  CHECK(bert->encode(word + "\xC3\x9F") == Tokens{1});
}

TEST_CASE("a text can be cut before a blank and nowhere else") {
  const TempDir dir;
  const auto bert = make_wordpiece_tokenizer(dir.write("vocab.txt", kVocabulary), true);
  CHECK(bert->safe_cut("un affable") == 2);
  CHECK(bert->safe_cut("un\xC2\xA0"
                       "affable,") == 0);
  CHECK(bert->safe_cut(" un") == 0);
  CHECK(bert->safe_cut("") == 0);
}

TEST_CASE("tokenizer.json: its rules, its limits, its added tokens") {
  const TempDir dir;
  const auto read = [&](const nlohmann::json& json, bool lower) {
    return make_wordpiece_tokenizer(dir.write("tokenizer.json", json.dump()), lower);
  };
  const auto bert = read(tokenizer_json(), true);
  CHECK(bert->vocabulary() == 7);
  CHECK(bert->tokens().mask == 4);
  CHECK(bert->encode("Unaff unaffun") == Tokens{5, 6, 1});
  CHECK(bert->rules().strip_accents);
  CHECK(error_of([&] { read(tokenizer_json(), false); })
            .find("is the tokenizer of an uncased model: give --tokenizer-type "
                  "BertWordPieceLowerCase") != std::string::npos);
  const auto refused = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json json = tokenizer_json();
    json[nlohmann::json::json_pointer(pointer)] = value;
    return error_of([&] { read(json, true); });
  };
  CHECK(refused("/model/type", "BPE").find("its model is \"BPE\", not WordPiece") !=
        std::string::npos);
  CHECK(refused("/model/vocab/un", 2).find("both have the number 2") != std::string::npos);
  CHECK(refused("/model/vocab/un", 4000000000).find("has the number 4000000000") !=
        std::string::npos);
  CHECK(refused("/model/vocab/un", -1).find("has the number -1") != std::string::npos);
  CHECK(refused("/normalizer", nullptr).find("its normalizer is not BertNormalizer") !=
        std::string::npos);
  CHECK(refused("/model", 3).find("it has no \"model\"") != std::string::npos);
  for (const char* token : {"extra", "un", "[mask]", "##aff"})
    CHECK(refused("/added_tokens/1/content", token)
              .find("tokenizer.json' adds the token \"" + std::string(token) + "\"") !=
          std::string::npos);
  CHECK(refused("/added_tokens", {3}).find("an added token has no content") != std::string::npos);
}

TEST_CASE("a vocab.txt and a tokenizer.json in one folder have the same tokens") {
  const TempDir dir;
  const auto whole = dir.write("tokenizer.json", tokenizer_json().dump());
  const auto fault = [&](const std::string& lines) {
    const auto path = dir.write("vocab.txt", lines);
    const std::string one = error_of([&] { make_wordpiece_tokenizer(path, true); });
    const std::string other = error_of([&] { make_wordpiece_tokenizer(whole, true); });
    CHECK(one.empty() == other.empty());
    for (const std::string& file : {whole, path})
      CHECK((one.empty() || other.find("'" + file + "'") != std::string::npos));
    return one;
  };
  const std::string roles = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  CHECK(fault(roles + "un\n##aff\n").empty());
  CHECK(fault(roles + "un\r\n##aff\r\n\r\n").empty());
  CHECK(fault(roles + "##aff\nun\n").find("token \"##aff\" has the numbers 5 and 6") !=
        std::string::npos);
  CHECK(fault(roles + "un\n##aff\nun2\n").find("the second has no token \"un2\"") !=
        std::string::npos);
  CHECK(fault(roles + "un\n").find("the second has no token \"##aff\"") != std::string::npos);
}

TEST_CASE("what is wrong with a vocabulary is said with its place") {
  const TempDir dir;
  const auto fault = [&](const std::string& text) {
    return error_of([&] { make_wordpiece_tokenizer(dir.write("v.txt", text), true); });
  };
  CHECK(fault("[PAD]\nab\xFF\n") ==
        "--vocab-file " + dir / "v.txt" +
            ":2:3: this byte is not valid UTF-8: a vocab.txt has one piece of text per line");
  CHECK(fault("[PAD]\n[UNK]\n[CLS]\n[SEP]\n").find("has no token \"[MASK]\"") != std::string::npos);
  CHECK(fault("").find("cannot be read") != std::string::npos);
  CHECK(error_of([&] { make_tokenizer("BertWordPieceCase", "", ""); }) ==
        "BertWordPieceCase needs --vocab-file: give the vocab.txt or tokenizer.json of a BERT "
        "model");
  CHECK(error_of([&] { make_tokenizer("BertWordPiece", "", ""); }).find("is not known") !=
        std::string::npos);
}
