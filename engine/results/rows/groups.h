// Groups workpackages into families. Members of a family are iterations of the same workpackage.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/results/read/scan.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/results/rows/point_key.h"

namespace tally {

// Returns the number of each workpackage's family. Members have the same step and the same point,
// and differ in their own iteration or in that of a parent. As in JUBE, iterations of one parent
// are separate families if another parent is the same for all of them. `point_key`: equal for equal
// points. `own_values`: the parameters that may differ between iterations of one workpackage,
// because they follow from jube_wp_* or are evaluated again. If they differ between iterations of
// its parents, these are separate families.
std::unordered_map<int, size_t> find_families(
    const WorkpackagesById& workpackages,
    const std::function<std::string(const WorkpackageView&)>& point_key,
    const std::function<std::string(const WorkpackageView&)>& own_values);

// Groups an analyser's workpackages into result lines.

// Workpackages that share a result line: one, or with `reduce` all that differ only in their
// iteration.
struct Group {
  std::vector<const WorkpackageView*> members;  // by id
  InFiles all;                                  // of the members that count
  bool leaf = true;                             // no other group depends on it
  std::vector<InFiles> own;  // of each member, if there are several and somebody asks

  const InFiles& of_member(size_t member) const { return own.empty() ? all : own[member]; }
};

// The repeats that a row was planned to have: those that failed, go on or could not be created
// included.
struct PlannedRepeats {
  int count = 1;
  State open = State::done;  // the state of one that has not ended; done: all have
  int first = -1;            // the id of the first that was created; -1: it has no other
  bool any_well = false;     // whether one of those ended well
};

// The state of several workpackages that one value may come from: that of the one that has come
// farthest.
State nearest_to_done(State a, State b);

// Whether the workpackage is a warm-up of its step. No table shows its values.
bool is_warmup(const Benchmark& benchmark, const WorkpackageView& workpackage);

class Groups {
 public:
  // The arguments must outlive the object.
  Groups(const Benchmark& benchmark, const Analyser& analyser,
         const std::vector<WorkpackageView>& workpackages);

  // Finds the groups. Warm-ups, and what depends on them, are in none.
  void make();

  std::vector<Group>& all() { return groups_; }
  const std::vector<Group>& all() const { return groups_; }
  const WorkpackagesById& by_id() const { return by_id_; }
  // Null: the analyser does not read the step.
  const Analyse* find(const std::string& step) const;

  // Whether it is a measurement. One that failed, goes on or ended in an expected outcome is none,
  // whatever it printed. JUBE counts it as one.
  bool counts(const WorkpackageView& workpackage) const;
  bool any_counts(const Group& group) const;
  bool any_ended_well(const Group& group) const;
  // The repeats of the row with this workpackage. One without reduce or without iterations has one
  // repeat.
  PlannedRepeats planned_repeats(const WorkpackageView& workpackage) const;
  // Whether what became of the workpackage needs no note of its own: it is in a row, or a warm-up.
  bool has_row(const WorkpackageView& workpackage) const;
  const std::shared_ptr<const Points>& points() const { return points_; }
  // Whether the parameter may differ between the repeats of a point.
  bool varies(const std::string& parameter) const { return own_.count(parameter) != 0; }

  // The groups of the analysed workpackages that this group's members depend on, nearest first.
  std::vector<const Group*> ancestors(const Group& group) const;
  // All workpackages that these depend on, nearest first.
  std::vector<const WorkpackageView*> ancestors(
      const std::vector<const WorkpackageView*>& members) const;
  std::vector<const WorkpackageView*> ancestors(const WorkpackageView& workpackage) const;
  // The contents of the files of the workpackages that `workpackage` depends on, nearest first.
  struct Above {
    const WorkpackageView* workpackage;
    const InFiles* in_files;
  };
  std::vector<Above> above(const WorkpackageView& workpackage) const;

 private:
  void find_warmups();
  std::string own_values(const WorkpackageView& workpackage) const;
  std::unordered_map<int, size_t> find_families() const;
  void find_members();
  void add_missing(const WorkpackageView& one, PlannedRepeats* repeats) const;
  // The group of a workpackage. Null: it is in none.
  const Group* group_of(int id) const;

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  WorkpackagesById by_id_;
  const std::shared_ptr<const Points> points_;  // of all workpackages
  std::set<std::string> own_;                   // parameters that may differ between iterations
  std::set<int> warmups_;                       // ids
  // The family of each workpackage, the members of each family without warm-ups, and the steps of
  // which a workpackage has children, where points have several iterations.
  std::unordered_map<int, size_t> families_;
  std::vector<WorkpackagesById> members_;
  std::set<std::pair<int, std::string>> has_children_;
  std::vector<Group> groups_;
  std::vector<std::pair<int, size_t>> group_of_;  // id, place; by id
};

// Fills `found` of every group, and `own` if `each_member` and it has several members. Large runs
// are read by several threads. The problems that the returned scanner reports do not depend on
// their number.
Scanner scan_groups(const Benchmark& benchmark, const Analyser& analyser, bool each_member,
                    Groups& groups);

}  // namespace tally
