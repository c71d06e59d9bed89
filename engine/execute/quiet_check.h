// Notices that something makes workpackages on this machine slower than they should be: other
// programs on its CPUs and GPUs, throttling, clocks below the base clock.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "engine/base/status.h"
#include "engine/execute/machine_load.h"
#include "engine/execute/run_context.h"

namespace tally {

// Whether the workpackages of a step are watched. The step may decline. A setup or build step whose
// output no analyser reads gives no result that could be disturbed.
bool is_watched(const Benchmark& benchmark, const Step& step);

// $TALLY_QUIET_CHECK=off turns it off. It is off in JUBE's own files.
class QuietCheck {
 public:
  using Clock = std::chrono::steady_clock;
  explicit QuietCheck(RunContext& context);

  // A workpackage of `step` begins to run on this machine.
  void started(int id, const Step& step);
  // Takes a look, if it is due, at what no counter tells afterwards.
  void look();
  // When the next look is due.
  Clock::time_point next_look() const;
  // It has ended. Records in the journal what may have disturbed it. An error status means that the
  // journal failed.
  Status ended(int id);

 private:
  struct Begin {
    std::optional<LoadSample> load;
    CpuClocks::Sample clocks;
  };
  // A sample of now, or the latest one if there was one just before.
  const Begin& now();
  void sample();
  bool has_looks() const { return gpus_ != nullptr || clocks_.has_clocks(); }

  RunContext& context_;
  const bool on_;
  MachineLoad load_;
  CpuClocks clocks_;
  std::unique_ptr<GpuWatch> gpus_;  // null: there are none
  Begin latest_;
  Clock::duration cost_{};    // of the latest sample
  Clock::time_point next_{};  // many short workpackages share a sample
  Clock::time_point look_next_{};
  std::map<int, Begin> started_;
};

}  // namespace tally
