#include "engine/execute/execute.h"

#include <memory>

#include "engine/execute/loop.h"

namespace tally {

Status execute(Run& run, const Settings& settings, const Parts& parts, RunSummary* summary) {
  *summary = RunSummary();
  std::unique_ptr<ProcessRunner> own_processes;
  std::unique_ptr<Scheduler> own_scheduler;
  if (parts.processes == nullptr) own_processes = make_process_runner();
  if (parts.scheduler == nullptr) own_scheduler = make_scheduler();
  RunLoop loop(run, settings, parts, parts.processes != nullptr ? *parts.processes : *own_processes,
               parts.scheduler != nullptr ? *parts.scheduler : *own_scheduler);
  return loop.run(summary);
}

}  // namespace tally
