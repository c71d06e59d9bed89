// The result of an operation on the outside world: success, or one sentence that says what
// happened, where, and what to do.
#pragma once

#include <string>
#include <utility>

namespace tally {

class [[nodiscard]] Status {
 public:
  Status() = default;
  static Status ok() { return {}; }
  static Status error(std::string message) {
    Status s;
    s.failed_ = true;
    s.message_ = std::move(message);
    return s;
  }
  explicit operator bool() const { return !failed_; }
  const std::string& message() const { return message_; }

 private:
  bool failed_ = false;
  std::string message_;
};

}  // namespace tally
