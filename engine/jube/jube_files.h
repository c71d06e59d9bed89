// The files that JUBE leaves in a run's folder, for scripts that read them. The engine does not
// need them and never reads them back; it relies on the journal.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/results/rows/analyse.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The results of one analyser.
struct AnalyserResult {
  std::string name;
  std::vector<WorkpackageResult> workpackages;
};

// Writes RUNDIR/workpackages.xml. It has each workpackage's step, iteration, cycle, parents,
// iteration siblings and environment, and its own parameters (those not inherited from parents)
// with their templates.
Status write_workpackages_xml(const Benchmark& benchmark, const Journal& journal,
                              const std::string& run_dir);
// Writes RUNDIR/analyse.xml: the values from each workpackage's files, by analyser and step.
Status write_analyse_xml(const std::vector<AnalyserResult>& results, const std::string& run_dir);

// Appends a line with the time to RUNDIR/COMMAND.log: parse.log, continue.log, analyse.log,
// result.log. A folder that cannot be written belongs to another person's run; this is not an
// error.
void note_command(const std::string& run_dir, const std::string& command, const std::string& text);

}  // namespace tally
