// The merge table of a byte-pair encoding and the joining of one word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally::train {

// Pairs of tokens, each with the rank of its merge and the token that it becomes. Open addressing.
class MergeTable {
 public:
  struct Merge {
    int32_t rank = -1;
    int32_t token = -1;
  };

  explicit MergeTable(size_t merges);
  // False when the pair is there already.
  bool insert(int32_t left, int32_t right, Merge merge);
  // Null when the pair is never joined.
  const Merge* find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  size_t slot_of(uint64_t key) const;

  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

// Joins a word's tokens (one per byte at first): the pair of the lowest rank first, the leftmost of
// equals, until no pair is in the table. Scratch memory that is kept between words.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& table) : table_(table) {}
  // Joins in place.
  void merge(std::vector<int32_t>* word);

 private:
  void merge_short(std::vector<int32_t>* word);
  void merge_long(std::vector<int32_t>* word);

  struct Candidate {
    int32_t rank;
    uint32_t position;  // the left symbol's
    int32_t left, right, token;
    bool operator<(const Candidate& other) const {  // for a heap whose top is the lowest
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };
  const MergeTable& table_;
  std::vector<int32_t> ranks_;
  std::vector<uint32_t> next_, previous_;
  std::vector<Candidate> heap_;
};

}  // namespace tally::train
