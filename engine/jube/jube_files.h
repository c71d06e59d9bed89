// The files that JUBE leaves in a run's folder beside what the engine itself needs, for scripts
// that read them. The journal is the truth; these are copies for others, never read back.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/results/analyse.h"
#include "engine/workflow/workflow.h"

namespace tally {

// What one analyser found.
struct AnalyserResult {
  std::string name;
  std::vector<WorkpackageResult> workpackages;
};

// RUNDIR/workpackages.xml: each workpackage's step, iteration, cycle, own parameters (those that
// its parents do not hand down) with their templates, parents, iteration siblings and environment.
Status write_workpackages_xml(const Benchmark& benchmark, const Journal& journal,
                              const std::string& run_dir);
// The same as a text.
Status workpackages_xml(const Benchmark& benchmark, const Journal& journal, std::string* xml);

// RUNDIR/analyse.xml: what the analysers found in each workpackage's files, by analyser and step.
Status write_analyse_xml(const std::vector<AnalyserResult>& results, const std::string& run_dir);

// A line with the time in RUNDIR/COMMAND.log: parse.log, continue.log, analyse.log, result.log. A
// folder that cannot be written is another person's run, and no error.
void note_command(const std::string& run_dir, const std::string& command, const std::string& text);

}  // namespace tally
