// Carries out a benchmark: run directory, file sets, substitutions, operations, states.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct RunOptions {
  int jobs = 1;             // -j: workpackages at once
  bool exit_on_error = false;  // -e
  bool hide_animation = false;
  bool wait_for_jobs = true;
  std::string shell = "/bin/sh";
};

struct RunSummary {
  int done = 0, failed = 0, waiting = 0, lost = 0, running = 0;
  bool interrupted = false;
  // 0: every workpackage finished.
  int exit_code() const { return failed || lost || waiting || running || interrupted ? 1 : 0; }
};

// Runs, or goes on with, the benchmark of `journal` in `run_dir`. Everything that a person may want to
// read while it runs goes to the status line and to the run's log.
Status execute(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
               const std::string& run_dir, const RunOptions& options, RunSummary* summary);

}  // namespace tally
