// What the processes of a run throw when they cannot work together.
#pragma once

#include <stdexcept>

namespace tally::train {

// The environment or the flags do not say who this process is. what() is one sentence. Exit code 2.
struct LaunchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// Processes did not meet, or a message between them was lost.
struct CommunicationError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace tally::train
