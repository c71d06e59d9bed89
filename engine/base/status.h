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
  // `reason`: the errno value behind it; 0: none. `path`: the file that it is about.
  static Status error(std::string message, int reason = 0, std::string path = {}) {
    Status s;
    s.failed_ = true;
    s.message_ = std::move(message);
    s.reason_ = reason;
    s.path_ = std::move(path);
    return s;
  }
  explicit operator bool() const { return !failed_; }
  const std::string& message() const { return message_; }
  int reason() const { return reason_; }
  const std::string& path() const { return path_; }

 private:
  bool failed_ = false;
  int reason_ = 0;
  std::string message_;
  std::string path_;
};

}  // namespace tally
