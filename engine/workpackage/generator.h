// Which workpackages there are: those of the steps without depend at the start, children when their
// parents have finished well. The dry run and the run ask the same generator; they differ in who
// keeps what it makes (a list, or a journal) and in when a parent "has finished well" (at once, or
// when its commands have ended).
//
// A workpackage gets its id when it is made, so that a plan's ids are those of a sequential run.
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
  // Takes a new workpackage; ids ascend.
  virtual void take(Workpackage&& workpackage) = 0;
  // One that was taken or adopted.
  virtual const Workpackage& at(int id) const = 0;
};

// run: every value is computed; what cannot be fails its workpackage. plan: shell and perl values
// that wait for the workpackage are left open, unless children take them over, and a value of a
// step with parents that cannot be computed is no failure yet, since a run may make what it reads.
enum class Purpose { run, plan };

class Generator {
 public:
  // All must outlive the object.
  Generator(const Benchmark& benchmark, Expander& expander, Purpose purpose, WorkpackageSink& sink);

  // Makes the workpackages of the steps without depend, in file order. An error that concerns a
  // step as a whole goes to `diagnostics` with its place; nothing more is made then.
  void make_roots(Diagnostics& diagnostics);
  // Workpackage `id` has finished well: makes the children that this completes, but for those whose
  // parents had children before (adopt()).
  void make_children(int id, Diagnostics& diagnostics);
  // Takes note of one that exists already, in a run that goes on. Sets its repetition.
  void adopt(Workpackage* workpackage, Diagnostics& diagnostics);

  // --- what a plan tells besides
  // Points left out by a rule, once.
  std::vector<Excluded> take_excluded() { return std::move(excluded_); }
  // Things only a run can tell (a parameter read from a parent's output): one sentence each.
  std::vector<std::string> unknown() const;
  int points() const { return points_; }    // workpackages before iterations and repetitions
  int repeats() const { return repeats_; }  // the largest `repeat` of a step

 private:
  enum class Active : char { ask, yes, no };
  struct Family;  // the children of one combination of parents

  void make(int step, const std::vector<int>& parents, Diagnostics& diagnostics);
  bool copies_of(const Step& step, const Workpackage& workpackage, Diagnostics& diagnostics,
                 Copies* out) const;
  bool copies_of_points(Family& family, Diagnostics& diagnostics) const;
  int base_of(const std::vector<int>& parents, Diagnostics& diagnostics) const;
  void ask_active(Family& family) const;
  void make_point(Family& family, size_t point, int repetition, Diagnostics& diagnostics);
  bool make_one(const Family& family, size_t point, Workpackage workpackage,
                Diagnostics& diagnostics);
  void settle(const Step& step, Workpackage& workpackage);
  bool place(const Family& family, size_t point, Workpackage& workpackage,
             Diagnostics& diagnostics);

  const Benchmark& benchmark_;
  Expander& expander_;
  const Purpose purpose_;
  WorkpackageSink& sink_;
  std::vector<bool> has_children_;  // by step: another one depends on it
  FinishedWorkpackages finished_;
  std::vector<std::set<std::vector<int>>> adopted_;  // combinations of parents, by step
  // Adopted when they had ended well: a child that is not there was not active. Where `active`
  // names an id it is not asked again, since the next id would give another answer.
  std::set<int> ended_before_;
  int next_id_ = 0;
  std::vector<Excluded> excluded_;
  std::vector<std::set<std::string>> unknown_names_;  // by step
  std::set<std::string> unknown_errors_;
  int points_ = 0;
  int repeats_ = 1;
};

// Makes a planned workpackage what a run would make of it at its creation: every value is computed
// (shell and perl values run). An error says which cannot be.
Status finish_planned(const Benchmark& benchmark, Expander& expander, Workpackage* workpackage);

}  // namespace tally
