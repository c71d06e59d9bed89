// Types that take little memory in objects of which a run may have 100,000.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tally {

// A container that few objects have anything in. It takes the space of one pointer; an empty
// std::map takes six. Hardly any of 100,000 rows has values from the workpackages of others.
template <class Container>
class Rare {
 public:
  Rare() = default;
  Rare(const Rare& other)
      : content_(other.content_ ? std::make_unique<Container>(*other.content_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(const Rare& other) {
    if (this != &other) *this = Rare(other);
    return *this;
  }
  Rare& operator=(Rare&&) noexcept = default;
  ~Rare() = default;

  const Container& operator*() const {
    static const Container none;
    return content_ ? *content_ : none;
  }
  const Container* operator->() const { return &**this; }
  // A plan asks a million points whether they have an error: without a call.
  bool empty() const { return !content_ || content_->empty(); }
  // The container to write to. It exists from now on.
  Container& edit() {
    if (!content_) content_ = std::make_unique<Container>();
    return *content_;
  }
  // Takes no space if `content` is empty.
  void set(Container content) {
    content_ = content.empty() ? nullptr : std::make_unique<Container>(std::move(content));
  }

 private:
  std::unique_ptr<Container> content_;  // null: empty
};

// A text that few objects have. It takes the space of one pointer; an empty std::string takes
// four. A Workpackage has seven such texts, and is 160 bytes with them in place of 328: 168 MB of a
// plan of a million, of which hardly one has any. Rare<std::string> alone would make each reader
// write `*` and each writer `set()`: it stands for the text instead.
class RareText {
 public:
  RareText() = default;
  RareText(std::string text) {  // NOLINT(google-explicit-constructor): it stands for the text
    text_.set(std::move(text));
  }
  RareText(const char* text)
      : RareText(std::string(text)) {}  // NOLINT(google-explicit-constructor)

  // The reference is valid until the object is assigned to.
  const std::string& str() const { return *text_; }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  bool empty() const { return text_.empty(); }
  void clear() { text_ = {}; }

  friend std::string operator+(const std::string& a, const RareText& b) { return a + b.str(); }
  friend std::string operator+(const RareText& a, const std::string& b) { return a.str() + b; }
  friend bool operator==(const RareText& a, const RareText& b) { return a.str() == b.str(); }
  friend bool operator!=(const RareText& a, const RareText& b) { return !(a == b); }

 private:
  Rare<std::string> text_;
};

// A container that most objects have in common with their neighbour, such as the types of the
// parameters of 100,000 workpackages of one step. It is there once; copies are cheap.
template <class Container>
class Common {
 public:
  Common() = default;
  Common(Container content)
      : content_(content.empty() ? nullptr
                                 : std::make_shared<const Container>(std::move(content))) {}

  const Container& operator*() const {
    static const Container none;
    return content_ ? *content_ : none;
  }
  const Container* operator->() const { return &**this; }
  auto begin() const { return (**this).begin(); }
  auto end() const { return (**this).end(); }
  bool operator==(const Common& other) const {
    return content_ == other.content_ || **this == *other;
  }

  // Becomes `last` where that is `content`; else both become a new one.
  void take(const Container& content, Common& last) {
    if (*last != content) last = Common(content);
    *this = last;
  }

 private:
  std::shared_ptr<const Container> content_;  // null: empty
};

// A map of few entries in one piece of memory: a std::map takes a piece for each. Each of 100,000
// rows has some. It is in the order of its keys. Pointers to its entries are valid until it is
// changed.
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
