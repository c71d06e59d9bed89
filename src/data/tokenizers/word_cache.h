// A cache of words and their tokens, which a tokenizer's encoder keeps for itself.
#pragma once

// The hash is inlined where this header is included; it comes before any other use of xxhash.h.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace tally::train {

// One entry per slot, the newest wins. Few distinct words make up most of a text.
class WordCache {
 public:
  bool find(std::string_view word, std::vector<int32_t>* out) {
    if (word.size() > kText) return false;
    Slot& slot = slots_[slot_of(word)];
    if (slot.length != word.size() || std::memcmp(slot.text, word.data(), word.size()) != 0)
      return false;
    out->insert(out->end(), slot.tokens, slot.tokens + slot.count);
    return true;
  }
  void insert(std::string_view word, const int32_t* tokens, size_t count) {
    if (word.size() > kText || count > kTokens) return;
    Slot& slot = slots_[slot_of(word)];
    slot.length = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(count);
    std::memcpy(slot.text, word.data(), word.size());
    std::copy(tokens, tokens + count, slot.tokens);
  }

 private:
  static constexpr size_t kText = 30, kTokens = 8, kSlots = size_t{1} << 15;
  struct Slot {  // one cache line
    uint8_t length = 0, count = 0;
    char text[kText];
    int32_t tokens[kTokens];
  };
  static size_t slot_of(std::string_view word) {
    return XXH3_64bits(word.data(), word.size()) & (kSlots - 1);
  }
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

}  // namespace tally::train
