#include "engine/execute/execute.h"

#include <memory>

#include "engine/base/files.h"
#include "engine/execute/loop.h"

namespace tally {

Status execute(const Benchmark& benchmark, Expander& expander, TextPool& pool, Journal& journal,
               const std::string& run_dir, const Settings& settings, const Parts& parts,
               RunSummary* summary) {
  *summary = RunSummary();
  std::unique_ptr<Evaluator> own_evaluator;
  std::unique_ptr<ProcessRunner> own_processes;
  std::unique_ptr<Scheduler> own_scheduler;
  if (parts.evaluator == nullptr)
    own_evaluator = make_evaluator(absolute_path("."), settings.shell);
  if (parts.processes == nullptr) own_processes = make_process_runner();
  if (parts.scheduler == nullptr) own_scheduler = make_slurm_scheduler();
  RunLoop loop(benchmark, expander, pool, journal, run_dir, settings, parts,
               parts.evaluator != nullptr ? *parts.evaluator : *own_evaluator,
               parts.processes != nullptr ? *parts.processes : *own_processes,
               parts.scheduler != nullptr ? *parts.scheduler : *own_scheduler);
  return loop.run(summary);
}

}  // namespace tally
