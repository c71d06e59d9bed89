// The exit codes of tally-train (docs/flags.md).
#pragma once

namespace tally::train {

constexpr int exit_completed = 0;  // or ended by --exit-interval
constexpr int exit_error = 1;      // anything else
constexpr int exit_bad_input = 2;
constexpr int exit_out_of_memory = 3;
constexpr int exit_stopped = 4;  // a time limit or a signal stopped it
constexpr int exit_failed_check = 5;

// Whether a run with this code has ended in order.
constexpr bool ended_in_order(int code) {
  return code == exit_completed || code == exit_stopped;
}

}  // namespace tally::train
