// Carries out a benchmark: run directory, file sets, substitutions, operations, states.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/execute/jobs/scheduler.h"
#include "engine/execute/status_line.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"
#include "engine/workspace/process.h"

namespace tally {

class GpuDevices;

// Says which repeats need not run, because enough is known without them.
class RepeatJudge {
 public:
  virtual ~RepeatJudge() = default;
  // Called when a round of repeats begins in a step with `until`.
  virtual Status not_needed(const Run& run, std::vector<int>* workpackages) = 0;
  // Whether nothing more may begin. `continue` finds the rest.
  virtual bool is_spent() const { return false; }
};

// The outside world of a run. All are optional, and none is owned.
struct Parts {
  // Called when the engine is asked to stop while jobs are in the queue. Gets the number of these
  // jobs, and a function that says whether the request was repeated meanwhile. Null: the jobs are
  // left in the queue.
  enum class OnInterrupt { leave, cancel, keep_running };
  std::function<OnInterrupt(size_t jobs, const std::function<bool()>& repeated)> on_interrupt;
  // GPUs of this machine that gpu_slots may assign, named as in CUDA_VISIBLE_DEVICES. Empty: the
  // engine detects them.
  std::vector<std::string> gpus;
  // Watches the GPUs of this machine. Null: they are not watched.
  const GpuDevices* gpu_devices = nullptr;
  RepeatJudge* repeats = nullptr;  // null: all run
  StatusOutput* output = nullptr;  // what people see meanwhile; null: nothing
  // Null: the real ones.
  ProcessRunner* processes = nullptr;
  Scheduler* scheduler = nullptr;
};

struct RunSummary {
  int done = 0;  // succeeded, or ended in an outcome that the step expects
  int failed = 0;
  bool stopped = false;  // by -e: something failed in this session
  int waiting = 0;       // the done_file does not exist yet; `continue` checks again
  int lost = 0;
  int running = 0;  // jobs left in the queue
  int open = 0;     // not started: stopped by -e, an interrupt or max_async
  bool interrupted = false;
  // Steps (by index) whose shared operation cannot run here. The operation waits for workpackages
  // that cannot start before it has run. `by` names the key of the step that holds them back. If it
  // is "gpu_slots", a machine with more GPUs can continue the run.
  struct Blocked {
    int step;
    const char* by;
  };
  std::vector<Blocked> blocked;
  // Returns 0 when every workpackage finished.
  int exit_code() const {
    return failed || lost || waiting || running || open || interrupted ? 1 : 0;
  }
};

// Starts the run, or resumes it. Progress goes to the status line and to run.log. SIGINT and
// SIGTERM end the child processes and leave a run that can be resumed. An error status means that
// the run itself could not proceed, for example because the journal could not be written. A failed
// workpackage is only counted in `summary`.
Status execute(Run& run, const Settings& settings, const Parts& parts, RunSummary* summary);

}  // namespace tally
