// Carries out a benchmark: run directory, file sets, substitutions, operations, states.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/execute/process.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct RunOptions {
  int jobs = 1;                // -j: workpackages at once
  bool exit_on_error = false;  // -e
  bool hide_animation = false;
  bool fresh = false;        // setup and build steps take nothing over from earlier runs
  bool verbose = false;      // one line for each workpackage that ended, on standard error
  bool show_output = false;  // what a workpackage's commands printed, when it has ended
  bool wait_for_jobs = true;
  // Asked when somebody wants the engine to stop while jobs are in the queue: how many there are,
  // and whether the wish was repeated meanwhile. Null: they are left.
  enum class OnInterrupt { leave, cancel, keep_running };
  std::function<OnInterrupt(size_t jobs, const std::function<bool()>& repeated)> on_interrupt;
  std::string shell = "/bin/sh";
  // A folder that steps of Tally's own kinds find behind their PATH: tally-train's. Empty: none.
  std::string programs;
  // GPUs of this machine that gpu_slots may give out, as CUDA_VISIBLE_DEVICES names them; empty:
  // asked of the machine.
  std::vector<std::string> gpus;
  // Seams. Not owned; null: the real ones.
  Evaluator* evaluator = nullptr;
  ProcessRunner* processes = nullptr;
  Scheduler* scheduler = nullptr;
};

struct RunSummary {
  int done = 0;  // ended well, or in an outcome that its step expects
  int failed = 0;
  bool stopped = false;  // by -e: something failed in this session
  int waiting = 0;       // done_file not there yet; asked again by `continue`
  int lost = 0;
  int running = 0;  // jobs left in the queue
  int open = 0;     // not started: stopped by -e, an interrupt or max_async
  bool interrupted = false;
  // Steps (by index) whose shared operation cannot run here: it waits for workpackages that may not
  // begin before it has run, for the reason `by`, a key of the step. With "gpu_slots" a machine of
  // more GPUs can go on.
  struct Blocked {
    int step;
    const char* by;
  };
  std::vector<Blocked> blocked;
  // 0: every workpackage finished.
  int exit_code() const {
    return failed || lost || waiting || running || open || interrupted ? 1 : 0;
  }
};

// Runs, or goes on with, the benchmark of `journal` in `run_dir`. Everything that a person may want
// to read while it runs goes to the status line and to run.log. SIGINT and SIGTERM end the children
// and leave a run that can be continued. An error status means that the run could not go on at all
// (the journal could not be written, say); a failed workpackage is a number in `summary`.
Status execute(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
               const std::string& run_dir, const RunOptions& options, RunSummary* summary);

}  // namespace tally
