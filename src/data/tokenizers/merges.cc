#include "src/data/tokenizers/merges.h"

#include <algorithm>
#include <limits>

namespace tally::train {
namespace {

constexpr int32_t kNoMerge = std::numeric_limits<int32_t>::max();
// Scanning for the lowest rank beats a heap up to this length.
constexpr size_t kShortWord = 48;

uint64_t key_of(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32) | static_cast<uint32_t>(right);
}

}  // namespace

MergeTable::MergeTable(size_t merges) {
  size_t size = 16;
  while (size < merges * 2) size *= 2;
  slots_.resize(size);
  mask_ = size - 1;
}

size_t MergeTable::slot_of(uint64_t key) const {
  uint64_t hash = key * 0x9E3779B97F4A7C15ULL;
  hash ^= hash >> 32;
  size_t slot = hash & mask_;
  while (slots_[slot].key != kEmpty && slots_[slot].key != key) slot = (slot + 1) & mask_;
  return slot;
}

bool MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  Slot& slot = slots_[slot_of(key_of(left, right))];
  if (slot.key != kEmpty) return false;
  slot = {key_of(left, right), merge};
  return true;
}

const MergeTable::Merge* MergeTable::find(int32_t left, int32_t right) const {
  const Slot& slot = slots_[slot_of(key_of(left, right))];
  return slot.key == kEmpty ? nullptr : &slot.merge;
}

void WordMerger::merge(std::vector<int32_t>* word) {
  if (word->size() < 2) return;
  if (word->size() <= kShortWord) {
    merge_short(word);
  } else {
    merge_long(word);
  }
}

void WordMerger::merge_short(std::vector<int32_t>* word) {
  std::vector<int32_t>& w = *word;
  const auto rank = [&](size_t i) {
    const MergeTable::Merge* merge = table_.find(w[i], w[i + 1]);
    return merge == nullptr ? kNoMerge : merge->rank;
  };
  ranks_.resize(w.size() - 1);
  for (size_t i = 0; i + 1 < w.size(); ++i) ranks_[i] = rank(i);
  while (!ranks_.empty()) {
    const auto lowest = std::min_element(ranks_.begin(), ranks_.end());
    if (*lowest == kNoMerge) break;
    const auto at = static_cast<size_t>(lowest - ranks_.begin());
    w[at] = table_.find(w[at], w[at + 1])->token;
    w.erase(w.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    ranks_.erase(lowest);
    if (at > 0) ranks_[at - 1] = rank(at - 1);
    if (at < ranks_.size()) ranks_[at] = rank(at);
  }
}

// A doubly linked list of symbols and a heap of candidate pairs; a candidate whose symbols have
// changed since it was pushed is skipped.
void WordMerger::merge_long(std::vector<int32_t>* word) {
  constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  constexpr int32_t kGone = -1;
  std::vector<int32_t>& w = *word;
  const auto size = static_cast<uint32_t>(w.size());
  next_.resize(size);
  previous_.resize(size);
  for (uint32_t i = 0; i < size; ++i) {
    next_[i] = i + 1 < size ? i + 1 : kNone;
    previous_[i] = i > 0 ? i - 1 : kNone;
  }
  heap_.clear();
  const auto push = [&](uint32_t left) {
    const uint32_t right = next_[left];
    if (right == kNone) return false;
    const MergeTable::Merge* merge = table_.find(w[left], w[right]);
    if (merge == nullptr) return false;
    heap_.push_back({merge->rank, left, w[left], w[right], merge->token});
    return true;
  };
  for (uint32_t i = 0; i < size; ++i) push(i);
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate top = heap_.back();
    heap_.pop_back();
    const uint32_t left = top.position;
    const uint32_t right = next_[left];
    if (w[left] != top.left || right == kNone || w[right] != top.right) continue;
    w[left] = top.token;
    w[right] = kGone;
    next_[left] = next_[right];
    if (next_[left] != kNone) previous_[next_[left]] = left;
    if (push(left)) std::push_heap(heap_.begin(), heap_.end());
    if (previous_[left] != kNone && push(previous_[left])) {
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
  w.erase(std::remove(w.begin(), w.end(), kGone), w.end());
}

}  // namespace tally::train
