// Notices that other programs use the machine while workpackages run on it.
#pragma once

#include <chrono>
#include <map>
#include <optional>

#include "engine/base/status.h"
#include "engine/execute/machine_load.h"
#include "engine/execute/run_context.h"

namespace tally {

// $TALLY_QUIET_CHECK=off turns it off. It is off in JUBE's own files.
class QuietCheck {
 public:
  explicit QuietCheck(RunContext& context);

  // A workpackage begins to run on this machine.
  void started(int id);
  // It has ended. Records in the journal how many cores others used meanwhile, if that may have
  // disturbed it. An error status means that the journal failed.
  Status ended(int id);

 private:
  using Clock = std::chrono::steady_clock;
  // A sample of now, or the latest one if there was one just before.
  const std::optional<LoadSample>& now();
  void sample();

  RunContext& context_;
  const bool on_;
  MachineLoad load_;
  std::optional<LoadSample> latest_;
  Clock::duration cost_{};    // of the latest sample
  Clock::time_point next_{};  // many short workpackages share a sample
  std::map<int, LoadSample> started_;
};

}  // namespace tally
