// The exceptions of processes that cannot work together.
#pragma once

#include <stdexcept>

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
// Rank 0 reports why the ranks could not meet, so this one has nothing to say. Exit code 1.
struct ReportedByZero : CommunicationError {
  using CommunicationError::CommunicationError;
};

}  // namespace tally::train
