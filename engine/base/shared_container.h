// A container that most objects have in common with their neighbour, such as the types of the
// parameters of 100,000 workpackages of one step. It is there once; copies are cheap.
#pragma once

#include <memory>
#include <utility>

namespace tally {

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

}  // namespace tally
