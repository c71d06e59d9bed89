#include "tests/engine/workpackage/compare.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/cli/show_results.h"
#include "engine/plan/generated_files.h"
#include "engine/results/read/views.h"
#include "engine/workpackage/values.h"

namespace tally::testing {
namespace {

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

const char* status_of(State state) {
  if (finished_well(state)) return "DONE";
  return state == State::failed ? "ERROR" : "RUNNING";
}

}  // namespace

Compare::Compare(const Input& input, const Journal& journal, std::string run_dir,
                 Evaluator& evaluator, const std::vector<Seen>& seen)
    : input_(input),
      journal_(journal),
      benchmark_(*input.find(journal.run().benchmark)),
      run_dir_(std::move(run_dir)),
      evaluator_(evaluator),
      seen_(seen),
      planned_(benchmark_, run_info(benchmark_, journal.run().id, run_dir_, journal.run().start),
               evaluator, input.tags()) {
  Status status = journal.workpackages(&stored_);
  if (status) status = workpackage_views(benchmark_, journal, run_dir_, &views_, true);
  if (!status) what_ = status.message();
}

bool Compare::differs(const std::string& what) {
  if (what_.empty()) what_ = what;
  return false;
}

std::string Compare::name_of(const Journal::Stored& stored) const {
  return "workpackage " + std::to_string(stored.workpackage.id) + " (" + stored.step + ", " +
         state_name(stored.workpackage.outcome.state) + ")";
}

// The plan of a run whose workpackages ended as this one's did. `sessions`: when they began, in
// seconds since 1970.
void Compare::make_expected(const std::vector<double>& sessions) {
  std::vector<std::pair<double, int>> ended;
  for (const Journal::Stored& stored : stored_) {
    if (finished_well(stored.workpackage.outcome.state))
      ended.emplace_back(stored.ended, stored.workpackage.id);
  }
  std::sort(ended.begin(), ended.end());
  std::vector<std::vector<int>> order(sessions.size());
  for (const auto& [time, id] : ended) {
    size_t session = 0;
    while (session + 1 < sessions.size() && sessions[session + 1] <= time) ++session;
    order[session].push_back(id);
  }
  planned_.in_order(order);
  for (const Workpackage& workpackage : planned_.workpackages()) {
    expected_.push_back(finish(planned_, workpackage, expected_));
  }
}

std::string Compare::differences(Planned& dry_run, const std::vector<double>& sessions,
                                 const Session& session, bool one_by_one) {
  make_expected(sessions);
  if (!session.status) {
    // What ends the whole run is known to a plan.
    if (planned_.error().empty()) {
      differs("the run ends with \"" + session.status.message() + "\", the plan says nothing");
    }
    return what_;
  }
  if (!planned_.error().empty()) {
    // One that was killed as it recorded the parent's end had not said it yet: continue does.
    if (session.ended) {
      differs("the plan ends with \"" + planned_.error() + "\", the run goes on");
    }
    return what_;
  }
  const bool equal = same_workpackages() && same_views() && same_commands() && same_files() &&
                     same_records() && (!one_by_one || repetitions_in_order());
  const bool all_done =
      std::all_of(stored_.begin(), stored_.end(), [](const Journal::Stored& stored) {
        return finished_well(stored.workpackage.outcome.state);
      });
  if (equal && session.ended && all_done) {
    same_dry_run(dry_run, one_by_one && ids_are_those_of_the_plan());
  }
  return what_;
}

bool Compare::same_values(const std::string& where, const ByName& expected, const ByName& got) {
  for (const auto& [name, value] : expected) {
    const auto found = got.find(name);
    ++values_;
    if (found == got.end())
      return differs(where + " has no " + name + ", the plan \"" + value + "\"");
    if (found->second != value) {
      return differs(where + ": " + name + " is \"" + found->second + "\", in the plan \"" + value +
                     "\"");
    }
  }
  for (const auto& [name, value] : got) {
    if (expected.count(name) == 0) {
      return differs(where + ": " + name + " is \"" + value + "\", the plan has none");
    }
  }
  return true;
}

// ---- which workpackages there are

bool Compare::same_workpackages() {
  if (stored_.size() != expected_.size()) {
    return differs("the run has " + std::to_string(stored_.size()) + " workpackages, the plan " +
                   std::to_string(expected_.size()));
  }
  for (const Journal::Stored& stored : stored_) {
    if (!same_lineage(stored)) return false;
    // A run step's output belongs to the workpackage, wherever its commands run.
    const std::string own = run_dir_ + "/" + stored.directory + "/work";
    for (const std::string& folder : {own, stored.work_dir}) {
      if (!folder.empty()) by_folder_[absolute_path(folder)] = stored.workpackage.id;
    }
  }
  return true;
}

bool Compare::same_lineage(const Journal::Stored& stored) {
  const Workpackage& run = stored.workpackage;
  const Finished& one = expected_.at(static_cast<size_t>(run.id));
  const Workpackage& plan = one.workpackage;
  const Step& step = planned_.step_of(plan);
  if (stored.step != step.name.value || run.parents != plan.parents ||
      run.iteration != plan.iteration) {
    return differs(name_of(stored) + " is another one in the plan: step, parents or iteration");
  }
  // The lists in `depend` say whose ids the parents are.
  for (size_t i = 0; i < run.parents.size(); ++i) {
    const Finished& parent = expected_.at(static_cast<size_t>(run.parents[i]));
    if (planned_.step_of(parent.workpackage).name.value != step.depend[i].value) {
      return differs(name_of(stored) + ": parent " + std::to_string(i) + " is of another step");
    }
  }
  const bool cannot = run.outcome.state == State::failed && stored.started == 0;
  if (cannot != !one.error.empty()) {
    return differs(name_of(stored) + " says \"" + message(run.outcome) + "\", the plan \"" +
                   one.error + "\"");
  }
  if (cannot) return true;
  if (!iteration_is_right(plan) || !zip_holds(one)) return false;
  const std::string directory = folder_name_of(benchmark_, plan);
  if (stored.directory != directory || stored.work_dir != plan.work_dir) {
    return differs(name_of(stored) + " lies in " + stored.directory + " " + stored.work_dir +
                   ", in the plan in " + directory + " " + plan.work_dir);
  }
  return true;
}

// How many workpackages its step makes of one point.
int Compare::copies_of(const Finished& one) const {
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    const auto found = one.by_cycle.front().find(std::string(name));
    return found == one.by_cycle.front().end() ? nullptr : &found->second;
  };
  const Step& step = planned_.step_of(one.workpackage);
  int copies = 1;
  for (const Text* text : {&step.iterations, &step.repeat}) {
    if (!text->value.empty()) copies *= atoi(substitute(text->value, lookup).c_str());
  }
  return copies;
}

bool Compare::iteration_is_right(const Workpackage& workpackage) {
  std::map<std::string, const Finished*> parents;
  for (const int id : workpackage.parents) {
    const Finished& parent = expected_[static_cast<size_t>(id)];
    parents[planned_.step_of(parent.workpackage).name.value] = &parent;
  }
  int base = 0;
  for (const auto& [name, parent] : parents) {
    base = base * copies_of(*parent) + parent->workpackage.iteration;
  }
  const int copies = copies_of(expected_[static_cast<size_t>(workpackage.id)]);
  if (workpackage.iteration / copies == base) return true;
  return differs("workpackage " + std::to_string(workpackage.id) + " is iteration " +
                 std::to_string(workpackage.iteration) + ", its parents make it " +
                 std::to_string(base) + " * " + std::to_string(copies) + " or more");
}

bool Compare::zip_holds(const Finished& one) {
  if (!one.workpackage.parents.empty()) return true;  // update_mode may make one of the lists anew
  for (const auto& [set_name, set] : benchmark_.parameter_sets) {
    for (const std::vector<Text>& group : set.zip) {
      std::set<size_t> places;
      for (const Parameter& parameter : set.parameters) {
        const bool member = std::any_of(group.begin(), group.end(), [&](const Text& name) {
          return name.value == parameter.name.value;
        });
        const auto value = one.by_cycle.front().find(parameter.name.value);
        if (!member || value == one.by_cycle.front().end()) continue;
        const std::vector<std::string> list = split_strip(parameter.value.value, ",");
        const auto at = std::find(list.begin(), list.end(), value->second);
        places.insert(static_cast<size_t>(at - list.begin()));
      }
      if (places.size() > 1) {
        return differs("workpackage " + std::to_string(one.workpackage.id) +
                       " has zipped lists of " + set_name + " at different places");
      }
    }
  }
  return true;
}

// A step's points are all run once before any is run again.
bool Compare::repetitions_in_order() {
  std::map<int, int> last;
  for (const Seen& seen : seen_) {
    const auto found = by_folder_.find(folder_of(seen.stdout_path));
    if (found == by_folder_.end()) continue;
    const Workpackage& workpackage = expected_[static_cast<size_t>(found->second)].workpackage;
    const Step& step = planned_.step_of(workpackage);
    const bool waits = std::any_of(step.operations.begin(), step.operations.end(),
                                   [](const Operation& operation) { return operation.shared; });
    if (!workpackage.parents.empty() || step.procs.value != "1" || waits) continue;
    int& before = last[workpackage.step];
    if (workpackage.repetition < before) {
      return differs("workpackage " + std::to_string(workpackage.id) + ", repetition " +
                     std::to_string(workpackage.repetition) + ", ran after repetition " +
                     std::to_string(before));
    }
    before = workpackage.repetition;
  }
  return true;
}

// ---- result, analyse, info; --logs

bool Compare::same_views() {
  if (views_.size() != stored_.size()) return differs("result sees another number of workpackages");
  for (size_t i = 0; i < views_.size(); ++i) {
    if (!expected_[static_cast<size_t>(stored_[i].workpackage.id)].error.empty()) continue;
    if (!same_view(stored_[i], views_[i]) || !same_log_view(stored_[i], views_[i])) return false;
  }
  return true;
}

bool Compare::same_view(const Journal::Stored& stored, const WorkpackageView& view) {
  const Workpackage& run = stored.workpackage;
  const Finished& one = expected_[static_cast<size_t>(run.id)];
  if (view.id != run.id || view.step != stored.step || view.parents != one.workpackage.parents ||
      view.iteration != one.workpackage.iteration || view.cycle != run.cycle) {
    return differs("result takes " + name_of(stored) + " for another");
  }
  const auto cycle = static_cast<size_t>(run.cycle);
  if (cycle >= one.by_cycle.size()) return differs(name_of(stored) + " is in a cycle too many");
  ByName expected = one.by_cycle[cycle];
  if (expected["jube_wp_status"] == "RUNNING")
    expected["jube_wp_status"] = status_of(run.outcome.state);
  const ByName got = by_name(view.values);
  if (got.size() != view.values.size())
    return differs(name_of(stored) + ": a name twice in result");
  if (view.work_dir != expected["jube_wp_abspath"]) {
    return differs(name_of(stored) + ": result looks in " + view.work_dir);
  }
  return same_values("result of " + name_of(stored), expected, got);
}

bool Compare::same_log_view(const Journal::Stored& stored, const WorkpackageView& view) {
  const Finished& one = expected_[static_cast<size_t>(stored.workpackage.id)];
  const WorkpackageView log =
      planned_view(benchmark_, planned_.expander(), one.workpackage, "somewhere/log.txt");
  ByName expected = one.by_cycle.front();
  if (expected["jube_wp_status"] == "RUNNING") expected["jube_wp_status"] = "DONE";
  expected["jube_wp_abspath"] = absolute_path("somewhere");
  expected["jube_wp_relpath"] =
      relative_path(absolute_path("somewhere"), expected["jube_benchmark_home"]);
  if (log.types != view.types) return differs(name_of(stored) + ": other types by --logs");
  if (log.units != view.units) return differs(name_of(stored) + ": other units by --logs");
  return same_values("--logs of " + name_of(stored), expected, by_name(log.values));
}

}  // namespace tally::testing
