// The exceptions of processes that cannot work together.
#pragma once

#include <stdexcept>
#include <string>

namespace tally::train {

// The environment or the flags do not determine this process's rank. what() is one sentence. Exit
// code 2.
struct LaunchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Processes did not connect, or a message between them was lost.
struct CommunicationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A rank failed before the ranks had met. It has been reported, here or by rank 0, so that nothing
// is left to say. what() is that rank's message.
struct StartFailed : CommunicationError {
  StartFailed(const std::string& message, int exit_code)
      : CommunicationError(message), code(exit_code) {}
  int code;
};

}  // namespace tally::train
