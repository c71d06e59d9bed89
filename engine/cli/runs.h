// Finds runs by a directory and ids, as JUBE's commands take them.
#pragma once

#include <string>
#include <vector>

#include "engine/cli/commands.h"
#include "engine/journal/journal.h"
#include "engine/report/json.h"
#include "engine/run/run.h"
#include "engine/run/run_directory.h"

namespace tally {

// Returns the selected runs, ascending by id unless given in another order. Prints errors, and
// returns nothing if no run is found.
std::vector<RunDirectory> find_runs(const Settings& settings, const RunsArgs& args);
// Finds the folder of runs for `directory`. For one run's own folder, this is its parent, and *id
// is set.
bool find_outpath(const Settings& settings, const std::string& directory, std::string* outpath,
                  int* id);
// Opens the runs with these ids in each of the folders, as `result` finds them. Returns false,
// after printing why, if one cannot be opened.
bool open_runs(const Settings& settings, const std::vector<std::string>& folders,
               const std::vector<std::string>& ids, std::vector<Run>* runs);
// The facts known of the machines of a run, over all sessions, and the nodes of its jobs.
Status run_facts(const Journal& journal, Journal::Facts* facts);
// The description of a run in documents. The facts are missing if they cannot be read.
Status reported_run(const Run& run, ReportedRun* reported);
// The time at which a workpackage last started or ended, as "2026-11-21T01:18:53". If there is
// none, the start of the run.
std::string last_change(const RunRecord& run, const std::vector<Journal::Stored>& workpackages);
// The folder in which the commands of a workpackage ran.
std::string work_folder(const RunDirectory& run, const Journal::Stored& workpackage);
// The path of its "stdout" or "stderr". A run step's is in its own folder, even if it has a work_dir.
std::string output_of(const RunDirectory& run, const Journal::Stored& workpackage,
                      const std::string& name);
// Parses "3" as 3. Accepts only numbers.
bool parse_id(const std::string& text, int* id);

}  // namespace tally
