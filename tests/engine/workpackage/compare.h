// Holds a run, as its journal has it after a session, against the plan and what its commands saw.
//
// Everything is to be equal: the workpackages (id, step, parents, iteration, repetition, folder,
// work directory) and each name's value. The exceptions, all of them:
//
//   name                        where               why
//   jube_wp_status              journal's views     RUNNING while commands run, then DONE or ERROR
//   jube_wp_status              --logs              DONE: a log is there
//   jube_wp_relpath, _abspath   --logs              the folder in which the log lies
//   jube_wp_*                   shared operations   no single workpackage runs them
//   exported parameters of      environment         a workpackage's environment is made once, when
//     update_mode cycle                             it begins
//   ids, what is made of them   make_plan()         the plan plays a run in which everything
//                                                   succeeds, one after the other, and no work is
//                                                   shared; another run's children are made in the
//                                                   order in which their parents ended. It is held
//                                                   against a plan made in that order, and against
//                                                   make_plan() without ids. A continued run takes
//                                                   what has ended in the order of ids
//   a value that cannot be      plan of a step      a run may yet make what it reads: an error
//     computed                  with parents        when its values are finished (script, --logs)
//
// Besides, by rules that are written here once more: a child's iteration has its parents' as
// digits, zipped lists stand at one place, repetitions run one after the other.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/cli/prepare.h"
#include "engine/execute/execute.h"
#include "engine/journal/journal.h"
#include "engine/results/rows/analyse.h"
#include "tests/engine/workpackage/fake_processes.h"
#include "tests/engine/workpackage/planned.h"

namespace tally::testing {

struct Session {
  Status status;
  RunSummary summary;
  bool ended = false;  // nobody killed or interrupted the engine
};

class Compare {
 public:
  // All must outlive the object.
  Compare(const Input& input, const Journal& journal, std::string run_dir, Evaluator& evaluator,
          const std::vector<Seen>& seen);

  // The first difference, or "". `sessions`: when each began, in seconds since 1970. `one_by_one`:
  // one process at a time and nothing failed.
  std::string differences(Planned& dry_run, const std::vector<double>& sessions,
                          const Session& session, bool one_by_one);
  int values() const { return values_; }

 private:
  void make_expected(const std::vector<double>& sessions);
  bool same_values(const std::string& where, const ByName& expected, const ByName& got);
  bool differs(const std::string& what);
  std::string name_of(const Journal::Stored& stored) const;

  bool same_workpackages();
  bool same_lineage(const Journal::Stored& stored);
  bool iteration_is_right(const Workpackage& workpackage);
  int copies_of(const Finished& one) const;
  bool zip_holds(const Finished& one);
  bool same_views();
  bool same_view(const Journal::Stored& stored, const WorkpackageView& view);
  bool same_log_view(const Journal::Stored& stored, const WorkpackageView& view);
  bool same_commands();
  bool same_command(const Seen& seen);
  bool same_named(const std::string& where, const Seen& seen, const ByName& expected);
  bool same_environment(const std::string& where, const Seen& seen, const Finished& expected);
  bool same_files();
  bool same_records();
  bool same_record(const Record& record, bool reduced);
  // A value in a row: of the workpackage itself, or as NAME_STEP of one that it depends on.
  bool same_cell(const std::string& where, const WorkpackageView& view, const std::string& suffix,
                 const Record& record);
  bool was_printed(const std::string& where, const std::string& name, const std::string& value,
                   const std::set<int>& family);
  void add_ancestors(int id, std::set<int>& family) const;
  bool repetitions_in_order();
  bool same_dry_run(Planned& dry_run, bool exactly);
  bool ids_are_those_of_the_plan() const;

  const Input& input_;
  const Journal& journal_;
  const Benchmark& benchmark_;
  std::string run_dir_;
  Evaluator& evaluator_;
  const std::vector<Seen>& seen_;
  std::vector<Journal::Stored> stored_;
  std::vector<WorkpackageView> views_;
  Planned planned_;
  std::vector<Finished> expected_;
  std::map<std::string, int> by_folder_;  // work directory -> id
  std::set<std::string> asked_for_;       // columns of the tables
  std::string what_;
  int values_ = 0;
};

}  // namespace tally::testing
