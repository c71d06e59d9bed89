// A container that few objects have anything in. It takes the space of one pointer; an empty
// std::map takes six. Of 100,000 rows hardly any has values from the workpackages of others.
#pragma once

#include <memory>
#include <utility>

namespace tally {

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

}  // namespace tally
