// The outcome of a run and its message.
#pragma once

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "src/config/config.h"
#include "src/device/errors.h"
#include "src/measure/record.h"
#include "src/parallel/control/rendezvous.h"

namespace tally::train {

struct Ending {
  Outcome outcome = Outcome::completed;
  std::string message;  // one sentence; empty for completed
};

// The run cannot be carried out as asked: exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The run does not fit into memory, found before anything was allocated. Its sentence holds what to
// try. Exit code 3.
struct MemoryShortage : OutOfMemory {
  using OutOfMemory::OutOfMemory;
};
// A check of the numbers failed: exit code 5.
struct CheckFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A signal ended work that has no steps to vote in, such as an evaluation: exit code 4.
struct StopRequested : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls `check`; puts the flag that asked for it in front of the message of what it throws, unless
// the message begins with a flag. Failures of memory, of the device and of other processes are not
// the flag's: they pass unchanged.
template <typename Check>
void check_flag(const char* flag, const Check& check) {
  try {
    check();
  } catch (const OutOfMemory&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::runtime_error& e) {
    const std::string what = e.what();
    throw InputError(what.rfind("--", 0) == 0 ? what : fmt::format("{}: {}", flag, what));
  }
}

// The outcome and the message for an exception. Out of memory, on a device, on the host or inside a
// library, is distinguished from other errors, and its message says what to try; so is bad input.
Ending describe_failure(const std::exception_ptr& error, const Config& config);
// The same for a failure that has ended several processes.
Ending describe_failure(const Failure& failure);

}  // namespace tally::train
