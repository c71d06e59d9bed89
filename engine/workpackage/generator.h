// Decides which workpackages exist. Steps without `depend` get their workpackages at the start.
// Children are made when their parents have finished well. The dry run and the run use the same
// generator. They differ in two points: where its workpackages are kept (a list or a journal), and
// when a parent counts as finished well (at once, or when its commands have ended).
//
// A workpackage gets its id when it is made. So the ids of a plan are those of a sequential run.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/expand.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/lineage.h"
#include "engine/workpackage/values.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// Keeps the workpackages that a generator makes.
class WorkpackageSink {
 public:
  virtual ~WorkpackageSink() = default;
  // About so many follow: room can be made for them at once.
  virtual void expect(size_t /*more*/) {}
  // Takes a new workpackage. Ids ascend.
  virtual void take(Workpackage&& workpackage) = 0;
  // Returns a workpackage that was taken or adopted.
  virtual const Workpackage& at(int id) const = 0;
};

// run: every value is computed. A value that cannot be computed fails its workpackage.
// plan: shell and perl values that need the workpackage's own names are left open, unless children
// inherit them. In a step with parents, a value that cannot be computed is not a failure yet,
// because a run may create what the value reads.
enum class Purpose { run, plan };

class Generator {
 public:
  // All must outlive the object.
  Generator(const Benchmark& benchmark, Expander& expander, Purpose purpose, WorkpackageSink& sink);

  // Makes the workpackages of the steps without `depend`, in file order. An error that concerns a
  // whole step goes to `diagnostics` with its place; nothing more is made then.
  void make_roots(Diagnostics& diagnostics);
  // Takes the next one of these workpackages as a plan has made it, with the same expander and for
  // the same run. It must be final (see roots_are_final()).
  void take_root(Workpackage&& planned);
  // Makes the children whose parents are complete now that workpackage `id` has finished well.
  // Children of combinations of parents passed to adopt() are not made again.
  void make_children(int id, Diagnostics& diagnostics);
  // Registers a workpackage that already exists, in a run that resumes. Sets its repetition.
  void adopt(Workpackage* workpackage, Diagnostics& diagnostics);

  // --- further results for the plan
  // Whether a run makes the same workpackages of the steps without `depend`: no value of theirs
  // needs the workpackage's own names.
  bool roots_are_final() const { return roots_are_final_; }
  // Returns the points that a rule excluded. They are moved out, so only the first call has them.
  std::vector<Excluded> take_excluded() { return std::move(excluded_); }
  // Facts that only a run can establish (a parameter read from a parent's output), one sentence
  // each.
  std::vector<std::string> unknown() const;
  // Workpackages of which only a run knows whether they will be there: their rules or their
  // `active` are not computed (Evaluator::computes()).
  std::set<int> take_in_doubt() { return std::move(in_doubt_); }
  int points() const { return points_; }    // workpackages before iterations and repetitions
  int repeats() const { return repeats_; }  // the largest `repeat` of a step

 private:
  enum class Active : char { ask, yes, no };
  struct Family;  // the children of one combination of parents

  void make(int step, const std::vector<int>& parents, Diagnostics& diagnostics);
  bool copies_of(const Step& step, const Workpackage& workpackage, Diagnostics& diagnostics,
                 Copies* out) const;
  bool copies_of_points(Family& family, Diagnostics& diagnostics) const;
  bool has_room(const Family& family, Diagnostics& diagnostics);
  int base_of(const std::vector<int>& parents, Diagnostics& diagnostics) const;
  void ask_active(Family& family) const;
  void make_point(Family& family, size_t point, int repetition, Diagnostics& diagnostics);
  bool make_one(const Family& family, size_t point, Workpackage& workpackage,
                Diagnostics& diagnostics);
  void compute_own_values(const Step& step, Workpackage& workpackage);
  void leave_in_doubt(int workpackage, const std::string& cause);
  bool locate_active(const Family& family, size_t point, Workpackage& workpackage,
                     Diagnostics& diagnostics);

  const Benchmark& benchmark_;
  Expander& expander_;
  const Purpose purpose_;
  WorkpackageSink& sink_;
  std::vector<bool> has_children_;  // by step: another step depends on it
  FinishedWorkpackages finished_;
  std::vector<std::set<std::vector<int>>> adopted_;  // combinations of parents, by step
  std::vector<size_t> made_;                         // workpackages, also inactive ones, by step
  // Workpackages that had finished well when they were adopted. If such a workpackage lacks a
  // child, that child was not active. `active` is not evaluated again where it names an id, because
  // the next id would give a different answer.
  std::set<int> ended_before_;
  int next_id_ = 0;
  std::vector<Excluded> excluded_;
  std::vector<std::set<std::string>> unknown_names_;  // by step
  std::set<std::string> unknown_errors_;
  std::set<int> in_doubt_;
  bool roots_are_final_ = true;
  int points_ = 0;
  int repeats_ = 1;
};

// Completes a planned workpackage as a run would at its creation: every value is computed, and
// shell and perl values run. An error names the value that cannot be computed.
Status finish_planned(const Benchmark& benchmark, Expander& expander, Workpackage* workpackage);

}  // namespace tally
