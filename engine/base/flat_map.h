// A map of few entries in one piece of memory: a std::map takes a piece for each. Of 100,000 rows
// each has some.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace tally {

// A map in the order of its keys, as std::map, in one vector. Pointers to its entries are valid
// until it is changed.
template <class Key, class Mapped>
class FlatMap {
 public:
  using value_type = std::pair<Key, Mapped>;
  using Entries = std::vector<value_type>;
  using iterator = typename Entries::iterator;
  using const_iterator = typename Entries::const_iterator;

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  const_iterator begin() const { return entries_.begin(); }
  const_iterator end() const { return entries_.end(); }
  const_iterator find(const Key& key) const {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, before);
    return at != entries_.end() && at->first == key ? at : entries_.end();
  }
  size_t count(const Key& key) const { return find(key) != end() ? 1 : 0; }
  // The entry, and whether it is new.
  template <class... Arguments>
  std::pair<iterator, bool> try_emplace(const Key& key, Arguments&&... arguments) {
    const auto at = std::lower_bound(entries_.begin(), entries_.end(), key, before);
    if (at != entries_.end() && at->first == key) return {at, false};
    return {entries_.emplace(at, key, Mapped(std::forward<Arguments>(arguments)...)), true};
  }
  Mapped& operator[](const Key& key) { return try_emplace(key).first->second; }

 private:
  static bool before(const value_type& entry, const Key& key) {
    return std::less<Key>()(entry.first, key);
  }

  Entries entries_;
};

}  // namespace tally
