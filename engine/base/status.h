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
  // Adds what to do, for a message that shows it on a line of its own.
  Status with_hint(std::string hint) && {
    hint_ = std::move(hint);
    return std::move(*this);
  }
  explicit operator bool() const { return !failed_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }
  int reason() const { return reason_; }
  const std::string& path() const { return path_; }

 private:
  bool failed_ = false;
  int reason_ = 0;
  std::string message_, hint_;
  std::string path_;
};

// Ends the calling function with the error that the expression, a Status, has; goes on without one.
#define TRY(expression)                                             \
  do {                                                              \
    if (::tally::Status tried = (expression); !tried) return tried; \
  } while (false)

}  // namespace tally
