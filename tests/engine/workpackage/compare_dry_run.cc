// The dry run against the run.
#include <algorithm>
#include <set>

#include "tests/engine/workpackage/compare.h"

namespace tally::testing {

// Whether the ids are those of a plan: nothing lets a workpackage end before an earlier one.
bool Compare::ids_are_those_of_the_plan() const {
  return std::none_of(benchmark_.steps.begin(), benchmark_.steps.end(), [](const Step& step) {
    return step.procs.value != "1" || !step.shared.empty() || !step.repeat.value.empty();
  });
}

namespace {

// Without ids: step, iteration, values, and the same of its parents.
class Keys {
 public:
  Keys(Planned& planned) : planned_(planned) {
    for (const char* name : {"jube_wp_id", "jube_wp_padid", "jube_wp_relpath", "jube_wp_abspath",
                             "jube_wp_envstr", "jube_wp_parent_"}) {
      names_.insert(name);
    }
    for (bool grown = true; grown;) {
      grown = false;
      for (const auto& [set_name, set] : planned.benchmark().parameter_sets) {
        for (const Parameter& parameter : set.parameters) {
          if (names_id(parameter.value.value)) {
            grown = names_.insert(parameter.name.value).second || grown;
          }
        }
      }
    }
  }

  bool names_id(const std::string& text) const {
    return std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
      return text.find(name) != std::string::npos;
    });
  }

  std::vector<std::string> all() {
    std::vector<std::string> keys;
    std::vector<Finished> finished;
    for (const Workpackage& workpackage : planned_.workpackages()) {
      finished.push_back(finish(planned_, workpackage, finished));
      std::string key = planned_.step_of(workpackage).name.value + " iteration " +
                        std::to_string(workpackage.iteration) + "." +
                        std::to_string(workpackage.repetition);
      for (const Binding& b : finished.back().workpackage.point.bindings) {
        const std::string& name = planned_.expander().pool()[b.name];
        if (names_.count(name) == 0) key += " " + name + "=" + planned_.expander().pool()[b.value];
      }
      for (const int parent : workpackage.parents) {
        key += " (" + keys[static_cast<size_t>(parent)] + ")";
      }
      keys.push_back(key);
    }
    return keys;
  }

 private:
  Planned& planned_;
  std::set<std::string> names_;
};

}  // namespace

// `exactly`: ids too.
bool Compare::same_dry_run(Planned& dry_run, bool exactly) {
  if (!dry_run.error().empty()) {
    return differs("the dry run ends with \"" + dry_run.error() + "\", the run ended well");
  }
  Keys ours(planned_), theirs(dry_run);
  // An id decides there whether a workpackage is made.
  const bool by_id =
      std::any_of(benchmark_.steps.begin(), benchmark_.steps.end(),
                  [&](const Step& step) { return ours.names_id(step.active.value); });
  if (by_id && !exactly) return true;
  std::vector<std::string> run = ours.all(), dry = theirs.all();
  if (!exactly) {
    std::sort(run.begin(), run.end());
    std::sort(dry.begin(), dry.end());
  }
  for (size_t i = 0; i < std::max(run.size(), dry.size()); ++i) {
    const std::string a = i < run.size() ? run[i] : "nothing";
    const std::string b = i < dry.size() ? dry[i] : "nothing";
    if (a != b)
      return differs("workpackage " + std::to_string(i) + " of the run is\n" + a +
                     "\nof the dry run\n" + b);
    if (!exactly) continue;
    std::vector<Finished> before = expected_;
    const Finished planned = finish(dry_run, dry_run.workpackages()[i], before);
    const Finished& done = expected_[i];
    if (planned.workpackage.parents != done.workpackage.parents) {
      return differs("workpackage " + std::to_string(i) + " has other parents in the dry run");
    }
    for (size_t cycle = 0; cycle < done.by_cycle.size(); ++cycle) {
      if (!same_values("the dry run's workpackage " + std::to_string(i), done.by_cycle[cycle],
                       planned.by_cycle.at(cycle))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace tally::testing
