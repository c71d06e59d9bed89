// The program of the Python tests: prepare, and encoding and decoding between files.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <vector>

#include "src/data/commands/prepare.h"
#include "src/data/commands/tokenize.h"
#include "src/data/tokenizers/tokenizer.h"

// data_tool prepare FLAG...
// data_tool tokenize FLAG...
// data_tool encode VOCAB MERGES < text > i32 numbers
// data_tool decode VOCAB MERGES < i32 numbers > text
// A type ("BertWordPieceLowerCase", "BertWordPieceCase", "HuggingFaceTokenizer") in the place of
// MERGES says whose VOCAB is.
int main(int argc, char** argv) {
  using namespace tally::train;
  if (argc > 1 && std::strcmp(argv[1], "prepare") == 0) return prepare_main(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "tokenize") == 0) return tokenize_main(argc - 1, argv + 1);
  if (argc != 4) return 2;
  const bool typed = is_wordpiece(argv[3]) || std::strcmp(argv[3], "HuggingFaceTokenizer") == 0;
  const auto tokenizer =
      typed ? make_tokenizer(argv[3], argv[2], "") : make_gpt2_tokenizer(argv[2], argv[3]);
  const std::string in{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (std::strcmp(argv[1], "encode") == 0) {
    const std::vector<int32_t> tokens = tokenizer->encode(in);
    std::fwrite(tokens.data(), sizeof(int32_t), tokens.size(), stdout);
  } else {
    std::vector<int32_t> tokens(in.size() / sizeof(int32_t));
    std::memcpy(tokens.data(), in.data(), tokens.size() * sizeof(int32_t));
    const std::string text = tokenizer->decode(tokens);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}
