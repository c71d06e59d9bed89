#include "engine/plan/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/plan/lineage.h"
#include "engine/plan/package_names.h"

namespace tally {
namespace {

// Whether a text names what differs between the copies of one point.
bool names_package(const std::string& text) {
  return text.find("jube_wp_") != std::string::npos;
}

// Plays a sequential run in which everything succeeds: packages finish in the order in which they
// were made, and a finished package makes its children.
class Planner {
 public:
  Planner(const Benchmark& benchmark, Expander& expander, Diagnostics& diagnostics)
      : benchmark_(benchmark),
        expander_(expander),
        diagnostics_(diagnostics),
        finished_(benchmark, expander),
        unknown_names_(benchmark.steps.size()) {
    plan_.benchmark = &benchmark;
  }

  Plan run() {
    for (size_t i = 0; i < benchmark_.steps.size(); ++i) {
      if (benchmark_.steps[i].depend.empty()) make_packages(static_cast<int>(i), {});
    }
    for (size_t next = 0; next < plan_.packages.size(); ++next) {
      if (diagnostics_.has_errors()) break;
      finish(next);
    }
    list_unknown();
    return std::move(plan_);
  }

 private:
  // A package that would fail has no children.
  void finish(size_t index) {
    if (plan_.packages[index].state == State::failed) return;
    const int step = plan_.packages[index].step;
    finished_.add(plan_.packages[index]);
    const std::string& name = benchmark_.steps[static_cast<size_t>(step)].name.value;
    for (size_t child = 0; child < benchmark_.steps.size(); ++child) {
      const std::vector<Text>& depend = benchmark_.steps[child].depend;
      if (std::none_of(depend.begin(), depend.end(),
                       [&](const Text& text) { return text.value == name; })) {
        continue;
      }
      for (const std::vector<int>& parents : parent_combinations(
               benchmark_, benchmark_.steps[child], plan_.packages[index], finished_)) {
        make_packages(static_cast<int>(child), parents);
      }
    }
  }

  Lookup lookup(const WorkPackage& package) const { return package_lookup(expander_, package); }

  bool copies(const Step& step, const WorkPackage& package, Copies* out) {
    const Status status = count_copies(step, lookup(package), out);
    if (!status) diagnostics_.error(step.name.mark, status.message());
    return static_cast<bool>(status);
  }

  int base_of(const std::vector<int>& parents) {
    std::vector<ParentIteration> iterations;
    for (const int id : parents) {
      const WorkPackage& parent = plan_.packages[static_cast<size_t>(id)];
      const Step& step = benchmark_.steps[static_cast<size_t>(parent.step)];
      Copies count;
      copies(step, parent, &count);
      iterations.push_back({step.name.value, parent.iteration, count.total()});
    }
    return iteration_base(std::move(iterations));
  }

  void make_packages(int step_number, const std::vector<int>& parents) {
    const Step& step = benchmark_.steps[static_cast<size_t>(step_number)];
    std::vector<const Point*> parent_points;
    for (const int id : parents) {
      parent_points.push_back(&plan_.packages[static_cast<size_t>(id)].point);
    }
    StepPoints made = expander_.expand(step, parent_points, diagnostics_);
    std::move(made.excluded.begin(), made.excluded.end(), std::back_inserter(plan_.excluded));
    if (made.points.empty()) return;
    const int base = parents.empty() ? 0 : base_of(parents);
    const std::vector<Active> active = active_points(step, step_number, parents, made);
    std::vector<Copies> counts(made.points.size());
    int repeat = 1;
    WorkPackage probe;
    probe.step = step_number;
    const bool fixed = !has_reference(step.iterations.value) && !has_reference(step.repeat.value);
    for (size_t i = 0; i < made.points.size(); ++i) {
      if (fixed && i > 0) {
        counts[i] = counts[0];
        continue;
      }
      probe.point = made.points[i];
      if (!copies(step, probe, &counts[i])) return;
      repeat = std::max(repeat, counts[i].repeat);
    }
    plan_.repeats = std::max(plan_.repeats, repeat);
    for (int repetition = 0; repetition < repeat; ++repetition) {
      for (size_t i = 0; i < made.points.size(); ++i) {
        if (repetition >= counts[i].repeat || active[i] == Active::no) continue;
        const bool last = repetition + 1 == counts[i].repeat;
        make_point(step, step_number, parents, counts[i], base, repetition,
                   last ? std::move(made.points[i]) : made.points[i], made.errors[i],
                   active[i] == Active::yes);
      }
    }
  }

  enum class Active : char { ask, yes, no };

  // Which points the step's `active` takes, as far as that is the same for all copies of a point.
  std::vector<Active> active_points(const Step& step, int step_number,
                                    const std::vector<int>& parents, const StepPoints& made) {
    const std::string& text = step.active.value;
    if (text == "true" || text == "True" || text.empty()) {
      return std::vector<Active>(made.points.size(), Active::yes);
    }
    std::vector<Active> active(made.points.size(), Active::ask);
    if (names_package(text)) return active;
    std::vector<std::string> expressions;
    std::vector<size_t> places;
    WorkPackage probe;
    probe.step = step_number;
    probe.parents = parents;
    const NamedValues builtins = expander_.step_builtins(step);
    for (size_t i = 0; i < made.points.size(); ++i) {
      if (!made.errors[i].empty() || !expander_.is_final(made.points[i])) continue;
      probe.point = made.points[i];
      expressions.push_back(
          active_expression(substitute(text, package_lookup(expander_, probe, builtins))));
      places.push_back(i);
    }
    const std::vector<Evaluation> results =
        expander_.evaluator().evaluate(Mode::python, expressions);
    for (size_t k = 0; k < places.size(); ++k) {
      if (results[k].ok) active[places[k]] = results[k].value == "True" ? Active::yes : Active::no;
    }
    return active;
  }

  static std::string active_expression(const std::string& text) {
    const std::string word(strip(text));
    if (word.empty() || word == "true") return "True";
    if (word == "false") return "False";
    return "bool(" + word + ")";
  }

  void make_point(const Step& step, int step_number, const std::vector<int>& parents,
                  const Copies& count, int base, int repetition, Point point,
                  const std::string& error, bool active) {
    bool any = false;
    for (int i = 0; i < count.iterations; ++i) {
      WorkPackage package;
      package.id = static_cast<int>(plan_.packages.size());
      package.step = step_number;
      package.parents = parents;
      package.repetition = repetition;
      package.iteration = base * count.total() + repetition * count.iterations + i;
      package.note = error;
      if (i + 1 == count.iterations) {
        // Once: in the last round.
        package.point = std::move(point);  // NOLINT(bugprone-use-after-move)
      } else {
        package.point = point;
      }
      settle(step, package);
      if (!package.note.empty()) {
        package.state = State::failed;
      } else if (!active && !is_active(step, package)) {
        continue;  // its id goes to the next
      }
      plan_.packages.push_back(std::move(package));
      any = true;
    }
    if (any && repetition == 0) ++plan_.points;
  }

  // Values that need the package's own names; what only a run can tell is left open.
  void settle(const Step& step, WorkPackage& package) {
    if (!package.note.empty() && !step.depend.empty()) {
      // A run may yet make what this value reads.
      unknown_errors_.insert(
          "step '" + step.name.value +
          "' fails, unless an earlier step makes what is missing: " + package.note);
      package.note.clear();
      return;
    }
    if (!package.note.empty() || expander_.is_final(package.point)) return;
    const auto builtins = package_builtins(benchmark_, expander_, plan_.packages, package);
    for (const std::string& name : expander_.finish_for_plan(step, package.point, builtins)) {
      unknown_names_[static_cast<size_t>(package.step)].insert(name);
    }
  }

  bool is_active(const Step& step, const WorkPackage& package) {
    const NamedValues builtins = package_builtins(benchmark_, expander_, plan_.packages, package);
    const std::string word =
        substitute(step.active.value, package_lookup(expander_, package, builtins));
    const Evaluation result =
        expander_.evaluator().evaluate_one(Mode::python, active_expression(word));
    if (!result.ok) {
      diagnostics_.error(step.active.mark,
                         "step '" + step.name.value + "': active=\"" + word +
                             "\" is neither true, false nor a Python expression: " + result.error);
    }
    return result.ok && result.value == "True";
  }

  void list_unknown() {
    for (size_t i = 0; i < unknown_names_.size(); ++i) {
      for (const std::string& name : unknown_names_[i]) {
        plan_.unknown.push_back("parameter '" + name + "' of step '" +
                                benchmark_.steps[i].name.value +
                                "' reads what only a run can make");
      }
    }
    plan_.unknown.insert(plan_.unknown.end(), unknown_errors_.begin(), unknown_errors_.end());
  }

  const Benchmark& benchmark_;
  Expander& expander_;
  Diagnostics& diagnostics_;
  Plan plan_;
  FinishedPackages finished_;
  std::vector<std::set<std::string>> unknown_names_;  // by step
  std::set<std::string> unknown_errors_;
};

}  // namespace

Plan make_plan(const Benchmark& benchmark, Expander& expander, Diagnostics& diagnostics) {
  return Planner(benchmark, expander, diagnostics).run();
}

}  // namespace tally
