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
  // `reason`: the errno value behind it; 0: none.
  static Status error(std::string message, int reason = 0) {
    Status s;
    s.failed_ = true;
    s.message_ = std::move(message);
    s.reason_ = reason;
    return s;
  }
  explicit operator bool() const { return !failed_; }
  const std::string& message() const { return message_; }
  int reason() const { return reason_; }

 private:
  bool failed_ = false;
  int reason_ = 0;
  std::string message_;
};

}  // namespace tally
