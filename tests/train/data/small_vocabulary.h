// A byte-level vocabulary of 256 bytes and a few merges, small enough to work out by hand.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/train/data/temp_dir.h"

struct SmallVocabulary {
  // Tokens 0..255 are the bytes in the order of GPT-2's byte characters of bytes 0..255; then the
  // merges in their order; then <|endoftext|>.
  static std::string character(int byte) {
    static const std::vector<std::string> all = [] {
      std::vector<std::string> out;
      int next = 256;
      for (int b = 0; b < 256; ++b) {
        const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        const int code = printable ? b : next++;
        out.push_back(code < 128 ? std::string(1, static_cast<char>(code))
                                 : std::string{static_cast<char>(0xC0 | (code >> 6)),
                                               static_cast<char>(0x80 | (code & 63))});
      }
      return out;
    }();
    return all[static_cast<size_t>(byte)];
  }
  explicit SmallVocabulary(const TempDir& dir,
                           const std::vector<std::pair<std::string, std::string>>& merges = {
                               {"l", "o"}, {"lo", "w"}, {"e", "r"}, {"Ġ", "low"}, {"a", "a"}}) {
    nlohmann::json vocab;
    for (int b = 0; b < 256; ++b) vocab[character(b)] = b;
    int next = 256;
    std::string lines = "#version: 0.2\n";
    for (const auto& [a, b] : merges) {
      vocab[a + b] = next++;
      lines += a + " " + b + "\n";
    }
    vocab["<|endoftext|>"] = next;
    vocab_file = dir.write("vocab.json", vocab.dump());
    merge_file = dir.write("merges.txt", lines);
  }
  std::string vocab_file, merge_file;
};
