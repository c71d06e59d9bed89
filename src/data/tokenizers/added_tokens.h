// The tokens that were added to a tokenizer: texts are cut at them before words are looked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/data/tokenizers/byte_level_rules.h"

namespace tally::train {

// Finds the longest token at the leftmost position where there is one, as tokenizers'
// AddedVocabulary. Immutable.
class AddedTokens {
 public:
  // `tokens`: whose contents are looked for as they are, the first of equals.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }
  // Calls on_text(view) and on_token(number) for the parts of `text` in their order.
  template <class OnText, class OnToken>
  void split(std::string_view text, OnText on_text, OnToken on_token) const {
    size_t done = 0, at = 0;
    for (Found found; find(text, done, at, &found); at = found.search, done = found.end) {
      if (found.begin > done) on_text(text.substr(done, found.begin - done));
      on_token(found.id);
    }
    if (done < text.size()) on_text(text.substr(done));
  }
  // Whether the parts of `text` stay the same, whatever follows, if it is cut at `at`: before a
  // character that is no letter or number where such a one ends, or before white space.
  bool may_cut(std::string_view text, size_t at) const;
  // Whether some token has to be a word of its own: a part of a text does not show that it is.
  bool single_words() const { return single_words_; }

 private:
  struct Found {
    size_t begin = 0, end = 0;  // including the white space that it takes
    size_t search = 0;          // from where to look for the next
    int32_t id = 0;
  };
  struct Node {
    std::vector<std::pair<unsigned char, uint32_t>> next;  // sorted
    int32_t token = -1;                                    // in tokens_
  };
  // The first token at or after `at` that is none of a word's middle; texts before `done` are used.
  bool find(std::string_view text, size_t done, size_t at, Found* found) const;
  uint32_t child(uint32_t node, char c) const;  // 0: none

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  bool first_[256] = {};  // whether a token begins with this byte
  size_t longest_ = 0;
  bool single_words_ = false;
};

}  // namespace tally::train
