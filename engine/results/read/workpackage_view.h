// A run's workpackage as the code in results/ sees it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/compact.h"
#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/python/value.h"
#include "engine/results/read/match_statistics.h"
#include "engine/results/read/outside_parts.h"
#include "engine/workpackage/measured.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

class ChangedFiles;

struct WorkpackageView {
  int id = 0;
  int run = 0;  // the run's id
  std::string step;
  int iteration = 0, cycle = 0;
  std::vector<int> parents;  // ids
  std::string work_dir;      // absolute
  // The absolute path of its own folder, set only when it has a separate work_dir. A run step's
  // output and its job's files are there, so that folder is searched first.
  std::string own_dir;
  bool finished = false;  // only finished workpackages are analysed
  State state = State::done;
  // The output there of one that has done nothing is of somebody else. In JUBE's files it counts.
  bool began = true;
  bool reused = false;  // a setup whose finished work was reused
  int worker = -1;      // reused: the workpackage of this run that did it; -1: another run's
  int done_by() const { return worker >= 0 ? worker : id; }
  Disturbance disturbance;  // while it ran on this machine
  // Files outside its own folder that results read. Null: there are none.
  std::shared_ptr<const std::vector<OutsidePart>> outside;
  bool outside_changed = false;  // since it ended
  // Its analysed files when it ended (files_print()). 0: unknown. A file that is opened now is
  // compared with it.
  uint64_t files_at_end = 0;
  // When they were looked at then, in nanoseconds since 1970. A file that was changed later is not
  // as it was, whatever time was given to it.
  long long files_noted_ns = 0;
  // Looks closely where that differs. Null: nothing is known of files.
  std::shared_ptr<const ChangedFiles> changed_files;
  // Its own outputs that have changed since it ended, as analyse() finds out. In Tally's files its
  // state is then `changed`, unless the journal has kept its values.
  struct Change {
    std::string path, text;  // "is 6 bytes longer"
    long long size = 0;      // when it ended
    bool grown = false;      // and what was there then is still there
  };
  std::vector<Change> changes;
  // The data that the journal kept of outputs that are gone or have changed. Null: they are there,
  // or nothing was kept.
  struct Kept {
    // The samples by analyser, pattern and its definition_of(), definition_of_row() or
    // definition_of_seconds().
    std::map<std::array<std::string, 3>, std::string> values;
    std::vector<std::string> absent;  // names and globs of which no file was there (EndedFile)

    // Returns the matches of the pattern that it kept under this analyse, unless it kept none, or
    // matches under another definition or type. `row`: those of that row of `rows`; -1: all.
    std::optional<Statistics> matches(const Benchmark& benchmark, const Analyser& analyser,
                                      const Analyse& analyse, const Pattern& pattern,
                                      int row = -1) const;
  };
  std::shared_ptr<const Kept> kept;
  // Why values of its job are missing (JobUse::why); in a row also for one that ran in no job.
  RareText no_job_use;
  // Everything a result may show: first the parameters, then the jube_* built-ins and others.
  std::vector<std::pair<std::string, std::string>> values;
  size_t parameters = 0;  // how many of the values are parameters
  // The own values of parameters that a key of the step hides (launch).
  std::vector<std::pair<std::string, std::string>> hidden;
  // Files by the names of values. Mostly those of the other workpackages of the step.
  using Types = std::vector<std::pair<std::string, ValueType>>;
  using Units = std::vector<std::pair<std::string, std::string>>;
  Common<Types> types;
  Common<Units> units;
  std::vector<std::string> notes;
  // A log given by hand (`tally result --logs`). It replaces the first file that the step's
  // `analyse` names. If the log has that file's name, the other files are looked for beside it.
  // Otherwise they are missing without a message.
  std::string log;
};

// Workpackages in the order of their ids, each once.
using WorkpackagesById = std::vector<const WorkpackageView*>;
WorkpackagesById by_id(const std::vector<WorkpackageView>& workpackages);
// Null: there is none of that id.
const WorkpackageView* find_id(const WorkpackagesById& workpackages, int id);

// Sets the values that the journal kept of outputs that are gone or have changed, `kept` of the
// views of these workpackages, as far as there is something.
Status take_kept(const Journal& journal, const std::set<int>& ids,
                 std::vector<WorkpackageView>& views);

// Counts the workpackages of a run that was killed, goes on or waits, by their state: "2 of 6
// workpackages have not ended (1 running, 1 not begun): ...". Empty: all have ended. A step before
// theirs may have rows with values, so that no row tells. `views`: all of the run.
std::string unfinished_note(const Benchmark& benchmark, const std::vector<WorkpackageView>& views);

// Counts the workpackages whose output has changed since they ended (WorkpackageView::changes), and
// says what happened to the first of them. Empty: none, or the journal has kept the values of all.
std::string changed_note(const Benchmark& benchmark, const std::vector<WorkpackageView>& views);

}  // namespace tally
