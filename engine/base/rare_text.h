// A text that few objects have. It takes the space of one pointer; an empty std::string takes
// four. In a plan of a million workpackages hardly any has an error text.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tally {

class RareText {
 public:
  RareText() = default;
  RareText(std::string text) {  // NOLINT(google-explicit-constructor): it stands for the text
    if (!text.empty()) text_ = std::make_unique<std::string>(std::move(text));
  }
  RareText(const char* text)
      : RareText(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  RareText(const RareText& other)
      : text_(other.text_ ? std::make_unique<std::string>(*other.text_) : nullptr) {}
  RareText(RareText&&) noexcept = default;
  RareText& operator=(const RareText& other) {
    if (this != &other) *this = RareText(other);
    return *this;
  }
  RareText& operator=(RareText&&) noexcept = default;
  ~RareText() = default;

  // Never null. The reference is valid until the object is assigned to.
  const std::string& str() const {
    static const std::string none;
    return text_ ? *text_ : none;
  }
  operator const std::string&() const { return str(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return str(); }    // NOLINT(google-explicit-constructor)
  bool empty() const { return text_ == nullptr; }
  void clear() { text_.reset(); }

  friend std::string operator+(const std::string& a, const RareText& b) { return a + b.str(); }
  friend std::string operator+(const RareText& a, const std::string& b) { return a.str() + b; }
  friend bool operator==(const RareText& a, const RareText& b) { return a.str() == b.str(); }
  friend bool operator!=(const RareText& a, const RareText& b) { return !(a == b); }

 private:
  std::unique_ptr<std::string> text_;  // null: empty
};

}  // namespace tally
