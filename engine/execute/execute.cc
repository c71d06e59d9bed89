#include "engine/execute/execute.h"

#include <memory>

#include "engine/base/files.h"
#include "engine/execute/loop.h"

namespace tally {

Status execute(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
               const std::string& run_dir, const RunOptions& options, RunSummary* summary) {
  *summary = RunSummary();
  std::unique_ptr<Evaluator> own_evaluator;
  std::unique_ptr<ProcessRunner> own_processes;
  std::unique_ptr<Scheduler> own_scheduler;
  if (options.evaluator == nullptr)
    own_evaluator = make_evaluator(absolute_path("."), options.shell);
  if (options.processes == nullptr) own_processes = make_process_runner();
  if (options.scheduler == nullptr) own_scheduler = make_slurm_scheduler();
  RunLoop loop(benchmark, expander, pool, journal, run_dir, options,
               options.evaluator != nullptr ? *options.evaluator : *own_evaluator,
               options.processes != nullptr ? *options.processes : *own_processes,
               options.scheduler != nullptr ? *options.scheduler : *own_scheduler);
  return loop.run(summary);
}

}  // namespace tally
