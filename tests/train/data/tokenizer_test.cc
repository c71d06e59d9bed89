// Tokenizers: small cases worked out by hand, faults in files, the promise of safe_cut(). The real
// vocabulary is compared with Hugging Face's tokenizers in peer_tokenizer_test.py.
#include "src/data/tokenizers/tokenizer.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "src/data/text/utf8.h"
#include "src/data/tokenizers/merges.h"
#include "tests/train/data/small_vocabulary.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;
using Tokens = std::vector<int32_t>;

TEST_CASE("byte tokenizer: every byte is a token, 256 ends a document") {
  const auto t = make_byte_tokenizer();
  CHECK(t->vocabulary() == 257);
  CHECK(t->eod() == 256);
  CHECK(t->encode(std::string("a\xff\0z", 4)) == Tokens{97, 255, 0, 122});
  CHECK(t->decode({97, 255, 256}) == "a\xff");
  CHECK_THROWS_AS(t->decode({257}), std::out_of_range);
}

TEST_CASE("byte pairs are joined in the order of their ranks") {
  const TempDir dir;
  const SmallVocabulary v(dir);
  const auto t = make_gpt2_tokenizer(v.vocab_file, v.merge_file);
  CHECK(t->vocabulary() == 262);
  CHECK(t->eod() == 261);
  // lo=256 low=257 er=258 " low"=259 aa=260
  CHECK(t->encode("low") == Tokens{257});
  CHECK(t->encode("lower low") == Tokens{257, 258, 259});
  CHECK(t->encode("aaa") == Tokens{260, 97});  // the leftmost of equal ranks
  CHECK(t->encode("lo  low") == Tokens{256, 32, 259});
  CHECK(t->encode("").empty());
  CHECK(t->decode({257, 258, 259}) == "lower low");
  CHECK_THROWS_AS(t->decode({262}), std::out_of_range);
  // Text is text, also where it looks like a special token.
  CHECK(t->encode("<|endoftext|>").size() == 13);
}

TEST_CASE("long words: the heap gives what scanning gives") {
  // Ranks at random over two letters; the definition, applied naively, is the reference.
  MergeTable table(64);
  std::mt19937 random(7);
  std::vector<std::pair<int, int>> pairs;
  int32_t next = 2;
  for (int32_t rank = 0; rank < 40; ++rank) {
    const auto a = static_cast<int32_t>(random() % static_cast<unsigned>(next));
    const auto b = static_cast<int32_t>(random() % static_cast<unsigned>(next));
    if (table.insert(a, b, {rank, next})) ++next;
  }
  WordMerger merger(table);
  for (size_t length : {2, 3, 47, 48, 49, 50, 200, 3000}) {
    Tokens word(length);
    for (int32_t& token : word) token = static_cast<int32_t>(random() % 2);
    Tokens naive = word;
    for (;;) {
      size_t best = naive.size();
      int32_t best_rank = 1 << 30;
      for (size_t i = 0; i + 1 < naive.size(); ++i) {
        const auto* merge = table.find(naive[i], naive[i + 1]);
        if (merge != nullptr && merge->rank < best_rank) best_rank = merge->rank, best = i;
      }
      if (best == naive.size()) break;
      naive[best] = table.find(naive[best], naive[best + 1])->token;
      naive.erase(naive.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    merger.merge(&word);
    CHECK(word == naive);
  }
}

namespace {
// Text with every kind of boundary: contractions, white space of all sorts, letters beyond ASCII,
// digits.
std::string nasty_text(std::mt19937* random, size_t pieces) {
  const char* kPieces[] = {"'s",
                           "'ll",
                           "'",
                           "l",
                           "L",
                           " ",
                           "  ",
                           "\n",
                           "\r\n",
                           "\t",
                           "\xC2\xA0",
                           "\xE2\x80\x83",
                           "\xE3\x80\x80",
                           "\xE1\xA0\x8E",
                           "7",
                           "\xD9\xA3",
                           "\xC2\xBD",
                           "\xE4\xB8\xAD",
                           "\xC3\xA9",
                           "e\xCC\x81",
                           "!",
                           "--",
                           "\xF0\x9F\x98\x80",
                           "\xC2\x85",
                           "low",
                           "er",
                           "ve",
                           "re",
                           "\xE2\x80\xA8"};
  std::string text;
  for (size_t i = 0; i < pieces; ++i) text += kPieces[(*random)() % std::size(kPieces)];
  return text;
}

// Cuts random texts where safe_cut() says, and checks that the tokens stay the same. Returns how many
// were cut.
int checked_cuts(const Tokenizer& tokenizer, std::mt19937* random, int rounds) {
  int cuts = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = nasty_text(random, 1 + (*random)() % 12);
    const size_t cut = tokenizer.safe_cut(text);
    REQUIRE(cut <= text.size());
    if (cut == 0) continue;
    ++cuts;
    const std::string whole = text + nasty_text(random, (*random)() % 4);
    Tokens parts = tokenizer.encode(std::string_view(whole).substr(0, cut));
    const Tokens rest = tokenizer.encode(std::string_view(whole).substr(cut));
    parts.insert(parts.end(), rest.begin(), rest.end());
    CHECK_MESSAGE(parts == tokenizer.encode(whole), whole);
  }
  return cuts;
}
}  // namespace

TEST_CASE("safe_cut: cutting there never changes the tokens, whatever follows") {
  const TempDir dir;
  const SmallVocabulary v(dir);
  const auto t = make_gpt2_tokenizer(v.vocab_file, v.merge_file);
  std::mt19937 random(1);
  CHECK(checked_cuts(*t, &random, 2000) > 1000);
  CHECK(t->safe_cut("") == 0);
  CHECK(t->safe_cut("aaaa") == 0);
  CHECK(t->safe_cut("he'l") == 2);  // not between the apostrophe and l: 'll is one word
  CHECK(t->safe_cut("one two") == 3);
  CHECK(t->safe_cut("one two  ") == 7);
  CHECK(t->safe_cut("\xE4\xB8\xAD\xE3\x80\x82") == 3);  // a letter and a full stop
  CHECK(t->safe_cut("one \xE4\xB8") == 3);              // an unfinished character is let be
  CHECK(t->safe_cut("x y" + std::string(10000, 'z')) ==
        1);  // beyond the window that is looked at first
}

namespace {
// A tokenizer.json of the small vocabulary with these words and added tokens.
std::string tokenizer_json(const TempDir& dir, const nlohmann::json& words,
                           const nlohmann::json& added = nlohmann::json::array(),
                           const nlohmann::json& normalizer = nullptr) {
  const SmallVocabulary v(dir);
  auto vocabulary = nlohmann::json::parse(dir.read("vocab.json"));
  vocabulary.erase("<|endoftext|>");
  std::filesystem::remove(v.vocab_file);
  std::filesystem::remove(v.merge_file);
  const nlohmann::json file = {{"version", "1.0"},
                               {"added_tokens", added},
                               {"normalizer", normalizer},
                               {"pre_tokenizer", words},
                               {"post_processor", nullptr},
                               {"model",
                                {{"type", "BPE"},
                                 {"vocab", vocabulary},
                                 {"merges", {"l o", "lo w", "e r", "Ġ low", "a a"}}}}};
  return dir.write("tokenizer.json", file.dump());
}

nlohmann::json split(const std::string& pattern, bool space = false) {
  return {{"type", "Sequence"},
          {"pretokenizers",
           {{{"type", "Split"},
             {"pattern", {{"Regex", pattern}}},
             {"behavior", "Isolated"},
             {"invert", false}},
            {{"type", "ByteLevel"}, {"add_prefix_space", space}, {"use_regex", false}}}}};
}

const char* const kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
}  // namespace

TEST_CASE("tokenizer.json of any kind: words, added tokens, normalization, by hand") {
  const TempDir dir;
  const nlohmann::json added = {
      {{"id", 261}, {"content", "<|endoftext|>"}, {"special", true}, {"normalized", false}},
      {{"id", 262}, {"content", "<x>"}, {"rstrip", true}}};
  const auto t = make_json_tokenizer(tokenizer_json(dir, split(kLlama3), added, {{"type", "NFC"}}));
  CHECK(t->vocabulary() == 263);
  CHECK(t->eod() == 261);
  CHECK(t->encode("lower low") == Tokens{257, 258, 259});
  CHECK(t->encode("low<|endoftext|>low<x> \n low") == Tokens{257, 261, 257, 262, 257});
  CHECK(t->encode("12345") == Tokens{'1', '2', '3', '4', '5'});
  CHECK(t->encode("e\xCC\x81") == t->encode("\xC3\xA9"));
  CHECK(t->decode({257, 261, 262}) == "low<|endoftext|><x>");
  // A space before each word that has none: "l", "o" and "w" are words.
  const auto spaced = make_json_tokenizer(tokenizer_json(dir, split("[low]", true)));
  CHECK(spaced->encode("low l") == Tokens{' ', 'l', ' ', 'o', ' ', 'w', ' ', ' ', 'l'});
  CHECK(error_of([&] { spaced->eod(); }).find("name the eos_token") != std::string::npos);
  CHECK(error_of([&] {
          make_json_tokenizer(tokenizer_json(dir, split("a.")));
        }).find("pattern.Regex\" has \".\" at character 2") != std::string::npos);
}

TEST_CASE("safe_cut of a tokenizer.json: cutting there never changes the tokens") {
  const TempDir dir;
  const nlohmann::json added = {{{"id", 261}, {"content", "low er"}},
                                {{"id", 262}, {"content", " re"}, {"lstrip", true}},
                                {{"id", 263}, {"content", "!--"}, {"rstrip", true}}};
  std::mt19937 random(2);
  for (const bool space : {false, true})
    for (const nlohmann::json& normalizer : {nlohmann::json(), nlohmann::json{{"type", "NFC"}}}) {
      nlohmann::json tokens = added;
      for (nlohmann::json& token : tokens) token["normalized"] = normalizer.is_null();
      const auto t =
          make_json_tokenizer(tokenizer_json(dir, split(kLlama3, space), tokens, normalizer));
      CHECK(checked_cuts(*t, &random, 1000) > 100);
    }
  // Where it is not known, a text stays whole.
  const auto other = make_json_tokenizer(tokenizer_json(dir, split("[a-z]+")));
  CHECK(other->safe_cut("one two three") == 0);
}

TEST_CASE("UTF-8: maximal invalid parts become one U+FFFD each, as in Python") {
  const std::string r = "\xEF\xBF\xBD";
  // Unicode 15, table 3-8, and Python's bytes.decode("utf-8", "replace").
  CHECK(clean_utf8("a\xC0\xAF") == "a" + r + r);
  CHECK(clean_utf8("\xF0\x80\x80\x41") == r + r + r + "A");
  CHECK(clean_utf8("\xED\xA0\x80") == r + r + r);
  CHECK(clean_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") ==
        r + r + r + r + r + "A" + r + r + "B");
  CHECK(clean_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == r + r + r + r + "A");
  CHECK(clean_utf8("gr\xC3\xBC\xC3") == "gr\xC3\xBC" + r);
  const std::string whole = "x\xF0\x9F\x98\x80y\xE4\xB8\xAD\xFFz\xE4\xB8";
  for (size_t cut = 0; cut <= whole.size(); ++cut) {
    Utf8Cleaner cleaner;
    std::string out;
    cleaner.append(std::string_view(whole).substr(0, cut), &out);
    cleaner.append(std::string_view(whole).substr(cut), &out);
    cleaner.finish(&out);
    CHECK(out == clean_utf8(whole));
    CHECK(cleaner.replacements() == 2);
  }
}

TEST_CASE("vocabulary files: one sentence for each fault") {
  const TempDir dir;
  const SmallVocabulary v(dir);
  const auto fault = [&](const std::string& vocab, const std::string& merges) {
    return error_of([&] { make_gpt2_tokenizer(vocab, merges); });
  };
  const std::string missing = dir / "none";
  CHECK(fault(missing, v.merge_file) ==
        "--vocab-file '" + missing + "' cannot be read: No such file or directory");
  CHECK(fault(v.vocab_file, missing) ==
        "--merge-file '" + missing + "' cannot be read: No such file or directory");
  CHECK(fault(dir.write("bad.json", "{\"a\": 1"), v.merge_file).find("is not a GPT-2 vocabulary") !=
        std::string::npos);
  CHECK(fault(dir.write("list.json", "[1]"), v.merge_file).find("it holds no such object") !=
        std::string::npos);
  CHECK(fault(dir.write("twice.json", "{\"a\":1,\"b\":1}"), v.merge_file)
            .find("both have the number 1") != std::string::npos);
  CHECK(fault(dir.write("negative.json", "{\"a\":-1}"), v.merge_file).find("has the number -1") !=
        std::string::npos);
  CHECK(
      fault(dir.write("few.json", "{\"a\":1}"), v.merge_file).find("no token for the byte 0x00") !=
      std::string::npos);
  auto json = nlohmann::json::parse(dir.read("vocab.json"));
  json.erase("<|endoftext|>");
  CHECK(fault(dir.write("noend.json", json.dump()), v.merge_file)
            .find("has no token \"<|endoftext|>\"") != std::string::npos);
  const std::string three = dir.write("three.txt", "l o\nlo w x\n");
  CHECK(fault(v.vocab_file, three) ==
        "--merge-file " + three +
            ":2: expected two tokens with a space between them, found \"lo w x\"");
  CHECK(fault(v.vocab_file, dir.write("other.txt", "q z\n"))
            .find("do the two files belong together?") != std::string::npos);
  CHECK(fault(v.vocab_file, dir.write("empty.txt", "")).find("--merge-file") != std::string::npos);
  CHECK(error_of([] { make_tokenizer("BertWordPiece", "", ""); })
            .find("choose GPT2BPETokenizer, HuggingFaceTokenizer, BertWordPieceLowerCase, "
                  "BertWordPieceCase or bytes") != std::string::npos);
  CHECK(error_of([] { make_tokenizer("GPT2BPETokenizer", "", ""); }).find("needs --vocab-file") !=
        std::string::npos);
}

TEST_CASE("tokenizer.json holds both files, and must be of GPT-2's kind") {
  const TempDir dir;
  const SmallVocabulary v(dir);
  auto vocabulary = nlohmann::json::parse(dir.read("vocab.json"));
  vocabulary.erase("<|endoftext|>");  // as an added token instead
  nlohmann::json json = {
      {"added_tokens", {{{"id", 261}, {"content", "<|endoftext|>"}, {"special", true}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", ""},
        {"vocab", vocabulary},
        {"merges",
         nlohmann::json::parse(R"([["l","o"],["lo","w"],["e","r"],["Ġ","low"],["a","a"]])")}}}};
  const auto made = [&] {
    const std::string path = dir.write("tokenizer.json", json.dump());
    return make_gpt2_tokenizer(path, path);
  };
  const auto files = make_gpt2_tokenizer(v.vocab_file, v.merge_file);
  const std::string text = "lower aaa  low\n\xc3\xa9";
  CHECK(made()->encode(text) == files->encode(text));
  CHECK(made()->eod() == 261);
  json["model"]["merges"] = {"l o", "lo w", "e r", "Ġ low", "a a"};  // before tokenizers 0.20
  CHECK(made()->encode(text) == files->encode(text));

  const auto fault = [&](const std::string& pointer, const nlohmann::json& value) {
    const nlohmann::json good = json;
    json[nlohmann::json::json_pointer(pointer)] = value;
    const std::string sentence = error_of([&] { made(); });
    json = good;
    return sentence;
  };
  const auto has = [](const std::string& sentence, const std::string& part) {
    return sentence.find(part) != std::string::npos;
  };
  CHECK(has(fault("/model/type", "WordPiece"), "its model is \"WordPiece\", not BPE"));
  CHECK(has(fault("/normalizer", {{"type", "NFC"}}), "it has a normalizer"));
  CHECK(has(fault("/pre_tokenizer/type", "Metaspace"), "is not ByteLevel"));
  CHECK(has(fault("/pre_tokenizer/add_prefix_space", true), "puts a space before the text"));
  CHECK(has(fault("/pre_tokenizer/use_regex", false), "GPT-2's pattern"));
  CHECK(has(fault("/model/continuing_subword_prefix", "##"), "continuing_subword_prefix"));
  CHECK(has(fault("/model/merges/1", "low"), "merge 2: expected two tokens, found \"low\""));
  CHECK(has(fault("/model/merges/1", nlohmann::json::array({"q", "z"})),
            "merge 2: \"qz\" is not in the vocabulary"));
  CHECK(has(fault("/model/merges", nlohmann::json::array()), "it has no merges"));
  CHECK(has(fault("/added_tokens/0/id", 3), "both have the number 3"));

  // Whichever of the two is named, they must agree.
  const auto contradiction = [&](const std::string& pointer, const nlohmann::json& value) {
    const std::string one = fault(pointer, value);
    const std::string other = error_of([&] { make_gpt2_tokenizer(v.vocab_file, v.merge_file); });
    for (const std::string& sentence : {one, other}) {
      CHECK_MESSAGE(has(sentence, "are two vocabularies that differ: "), sentence);
      CHECK(has(sentence, "'" + dir / "tokenizer.json'"));
    }
    return one;
  };
  CHECK(has(contradiction("/model/vocab/more", 262), "the second has no token \"more\""));
  CHECK(has(contradiction("/added_tokens/0/id", 262),
            "\"<|endoftext|>\" has the numbers 262 and 261"));
  CHECK(has(contradiction("/model/merges", {"l o"}), "they have 1 and 5 merges"));
  CHECK(error_of([&] { made(); }).empty());
}
