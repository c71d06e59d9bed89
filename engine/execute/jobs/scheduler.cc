#include "engine/execute/jobs/scheduler.h"

#include "engine/base/text.h"
#include "engine/journal/journal.h"
#include "engine/read/scheduler_file.h"
#include "engine/workspace/external_command.h"

namespace tally {

Refusal refusal_of_end(const CommandResult& result, bool has_id) {
  constexpr int kShellSignal = 128, kLastSignal = 64;  // a shell's exit code for a signal
  const int signal = result.signal != 0 ? result.signal : result.status - kShellSignal;
  const bool silent = strip(result.err).empty() && (strip(result.out).empty() || has_id);
  if (result.started && result.status >= 0 && silent) return Refusal::transient;
  if (signal > 0 && signal <= kLastSignal) return Refusal::transient;
  return result.started ? Refusal::failed : Refusal::rejected;
}

Status scheduler_of(const Journal& journal, std::unique_ptr<Scheduler>* scheduler) {
  Journal::Texts texts;
  TRY(journal.sources(&texts));
  for (const auto& [path, text] : texts) {
    if (table_of_file(path).empty()) continue;
    Sources sources;
    Diagnostics diagnostics;
    const uint32_t file = sources.add(path, text);
    const auto table = read_scheduler_table(path, file, text, diagnostics);
    if (!table) return Status::error(diagnostics.format(sources));
    *scheduler = make_scheduler(table);
    return Status::ok();
  }
  *scheduler = make_slurm();
  return Status::ok();
}

}  // namespace tally
