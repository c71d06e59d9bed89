#include "engine/workpackage/generator.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/expand/point.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/builtin_names.h"

namespace tally {
namespace {

// Whether the text of an `active` needs no evaluation.
bool is_truth(const std::string& text) {
  const std::string_view word = strip(text);
  return word.empty() || word == "true" || word == "True" || word == "false" || word == "False";
}

bool names_parent(const Step& step, const std::string& name) {
  return std::ranges::any_of(step.depend, [&](const Text& parent) { return parent.value == name; });
}

// Says what is wrong with the workpackage's work_dir, or "".
std::string work_dir_fault(const Workpackage& workpackage) {
  const std::string name = unknown_variable(workpackage.work_dir);
  if (name.empty()) return {};
  return "work_dir \"" + workpackage.work_dir + "\": " + name +
         " is neither a parameter nor in the environment";
}

// Sets the workpackage's folder name and work_dir. Returns what is wrong with them, or "".
std::string locate(const Step& step, const Expander& expander, const WorkpackageValues& values,
                   Workpackage* workpackage) {
  std::string directory;
  if (!step.suffix.value.empty()) {
    directory =
        workpackage_directory_name(workpackage->id, step.name.value, values.apply(step.suffix));
  }
  std::string work_dir;
  if (!step.work_dir.value.empty()) {
    const std::string path = values.path(step.work_dir);
    work_dir = opened_path(path, expander.run().home);
  }
  workpackage->directory = std::move(directory);
  workpackage->work_dir = std::move(work_dir);
  return work_dir_fault(*workpackage);
}

// A work_dir that cannot be made fails the workpackage in a run.
void fail_by_work_dir(const Step& step, const std::string& problem, Workpackage* workpackage) {
  if (problem.empty()) return;
  workpackage->outcome = failure(Reason::directory, problem);
  workpackage->outcome.place = step.work_dir.mark;
}

bool has_own_directory(const Step& step) {
  return !step.suffix.value.empty() || !step.work_dir.value.empty();
}

const Expander::Names kFolderNames = {"jube_wp_abspath", "jube_wp_relpath", "jube_wp_envstr"};
const Expander::Names kExports = {"jube_wp_envstr"};

// Whether the value of an exported parameter is not final. That of jube_wp_envstr is not, then.
bool has_open_exports(const Expander& expander, const Point& point) {
  return std::ranges::any_of(point.bindings, [&](const Binding& binding) {
    return !expander.is_final(binding) && expander.definition(binding).exported;
  });
}

// Finishes the point with `finish(builtins, later)`, which says what is wrong, or "". The folder's
// name may need values, and other values may name the folder or the exported values. No value is
// computed twice: a shell command may do more than print.
template <typename Finish>
std::string finish_and_locate(const Benchmark& benchmark, Expander& expander,
                              Workpackage& workpackage, const Finish& finish) {
  const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
  const auto values = [&] { return WorkpackageValues(benchmark, expander, workpackage); };
  if (has_own_directory(step)) {
    std::string problem = finish(values().builtins(), kFolderNames);
    if (!problem.empty()) return problem;
    locate(step, expander, values(), &workpackage);
  }
  if (has_open_exports(expander, workpackage.point)) {
    std::string problem = finish(values().builtins(), kExports);
    if (!problem.empty()) return problem;
  }
  return finish(values().builtins(), Expander::Names());
}

// The place where the user wrote the number of a step's workpackages.
Mark place_of_copies(const Step& step) {
  if (step.iterations.mark.known() && step.iterations.value != "1") return step.iterations.mark;
  return step.repeat.mark.known() ? step.repeat.mark : step.name.mark;
}

bool fails(const Workpackage& workpackage) {
  return workpackage.outcome.state == State::failed;
}

// `place` is where the value or the rule is written, if that is known.
void fail_by_value(const PointError& error, Workpackage& workpackage) {
  workpackage.outcome = failure(Reason::value, error.text);
  workpackage.outcome.place = error.place;
}

}  // namespace

struct Generator::Family {
  const Step& step;
  int step_number;
  const std::vector<int>& parents;
  StepPoints made;
  std::vector<Copies> copies;  // by point
  std::vector<Active> active;  // by point
  int base = 0;                // see iteration_base()
};

Generator::Generator(const Benchmark& benchmark, Expander& expander, Purpose purpose,
                     WorkpackageSink& sink)
    : benchmark_(benchmark),
      expander_(expander),
      purpose_(purpose),
      sink_(sink),
      finished_(benchmark, expander),
      adopted_(benchmark.steps.size()),
      made_(benchmark.steps.size(), 0),
      unknown_names_(benchmark.steps.size()) {
  for (const Step& step : benchmark.steps) {
    has_children_.push_back(std::ranges::any_of(
        benchmark.steps, [&](const Step& other) { return names_parent(other, step.name.value); }));
  }
}

void Generator::make_roots(Diagnostics& diagnostics) {
  for (size_t i = 0; i < benchmark_.steps.size() && !diagnostics.has_errors(); ++i) {
    const Step& step = benchmark_.steps[i];
    if (step.depend.empty() && has_workpackages(step)) make(static_cast<int>(i), {}, diagnostics);
  }
}

void Generator::take_root(Workpackage&& planned) {
  const Step& step = benchmark_.steps[static_cast<size_t>(planned.step)];
  next_id_ = planned.id + 1;
  if (!fails(planned) && has_own_directory(step))
    fail_by_work_dir(step, work_dir_fault(planned), &planned);
  sink_.take(std::move(planned));
}

void Generator::make_children(int id, Diagnostics& diagnostics) {
  const auto step_number = static_cast<size_t>(sink_.at(id).step);
  if (!has_children_[step_number]) return;
  finished_.add(sink_.at(id));
  const std::string& name = benchmark_.steps[step_number].name.value;
  for (size_t child = 0; child < benchmark_.steps.size(); ++child) {
    const Step& step = benchmark_.steps[child];
    if (!names_parent(step, name) || !has_workpackages(step)) continue;
    if (names_workpackage(step.active.value) && ended_before_.count(id) != 0) continue;
    for_each_parents(benchmark_, step, sink_.at(id), finished_, [&](const auto& parents) {
      if (adopted_[child].count(parents) == 0) make(static_cast<int>(child), parents, diagnostics);
      return !diagnostics.has_errors();
    });
    if (diagnostics.has_errors()) return;
  }
}

void Generator::adopt(Workpackage* workpackage, Diagnostics& diagnostics) {
  next_id_ = std::max(next_id_, workpackage->id + 1);
  if (!workpackage->parents.empty()) {
    adopted_[static_cast<size_t>(workpackage->step)].insert(workpackage->parents);
  }
  if (finished_well(workpackage->outcome.state)) ended_before_.insert(workpackage->id);
  const Step& step = benchmark_.steps[static_cast<size_t>(workpackage->step)];
  if (step.repeat.value.empty()) return;
  Copies copies;
  if (copies_of(step, *workpackage, diagnostics, &copies)) {
    workpackage->repetition = workpackage->iteration % copies.total() / copies.iterations;
  }
}

bool Generator::copies_of(const Step& step, const Workpackage& workpackage,
                          Diagnostics& diagnostics, Copies* out) const {
  Status status;
  const bool named = has_dollar_name(step.iterations.value) || has_dollar_name(step.repeat.value);
  if (named && !expander_.evaluator().computes() && !expander_.is_final(workpackage.point)) {
    *out = {};  // one of each, as far as is known
    return true;
  }
  if (named) {
    const WorkpackageValues values(benchmark_, expander_, workpackage);
    status = count_copies(step, values.lookup(), out);
  } else {
    status = count_copies(
        step, [](std::string_view) { return nullptr; }, out);
  }
  if (!status) diagnostics.error(place_of_copies(step), status.message());
  return static_cast<bool>(status);
}

int Generator::base_of(const std::vector<int>& parents, Diagnostics& diagnostics) const {
  std::vector<ParentIteration> iterations;
  for (const int id : parents) {
    const Workpackage& parent = sink_.at(id);
    const Step& step = benchmark_.steps[static_cast<size_t>(parent.step)];
    Copies count;
    copies_of(step, parent, diagnostics, &count);
    iterations.push_back({step.name.value, parent.iteration, count.total()});
  }
  return iteration_base(std::move(iterations));
}

void Generator::make(int step_number, const std::vector<int>& parents, Diagnostics& diagnostics) {
  const Step& step = benchmark_.steps[static_cast<size_t>(step_number)];
  std::vector<const Point*> points;
  for (const int id : parents) points.push_back(&sink_.at(id).point);
  Family family{step, step_number, parents, {}, {}, {}, 0};
  family.made = expander_.expand(step, points, diagnostics);
  if (purpose_ == Purpose::plan) {
    std::move(family.made.excluded.begin(), family.made.excluded.end(),
              std::back_inserter(excluded_));
  }
  if (diagnostics.has_errors() || family.made.points.empty()) return;
  family.base = base_of(parents, diagnostics);
  ask_active(family);
  if (!copies_of_points(family, diagnostics)) return;
  if (!has_room(family, diagnostics)) return;
  int repeat = 1;
  for (size_t i = 0; i < family.copies.size(); ++i) {
    if (family.active[i] != Active::no) repeat = std::max(repeat, family.copies[i].repeat);
  }
  repeats_ = std::max(repeats_, repeat);
  sink_.expect(family.made.points.size());
  // All points run once, then all again.
  for (int repetition = 0; repetition < repeat; ++repetition) {
    for (size_t i = 0; i < family.made.points.size(); ++i) {
      if (repetition >= family.copies[i].repeat || family.active[i] == Active::no) continue;
      make_point(family, i, repetition, diagnostics);
    }
  }
}

bool Generator::copies_of_points(Family& family, Diagnostics& diagnostics) const {
  const Step& step = family.step;
  const bool fixed = !has_dollar_name(step.iterations.value) && !has_dollar_name(step.repeat.value);
  family.copies.resize(family.made.points.size());
  Workpackage probe;
  probe.step = family.step_number;
  probe.parents = family.parents;
  for (size_t i = 0; i < family.copies.size(); ++i) {
    if (fixed && i > 0) {
      family.copies[i] = family.copies[0];
      continue;
    }
    if (!fixed) probe.point = family.made.points[i];
    if (!copies_of(step, probe, diagnostics, &family.copies[i])) return false;
  }
  return true;
}

// Whether the step's workpackages are few enough, with those of this family. Otherwise an error
// says so, before anything is made of it.
bool Generator::has_room(const Family& family, Diagnostics& diagnostics) {
  size_t& made = made_[static_cast<size_t>(family.step_number)];
  for (const Copies& copies : family.copies)
    made = limited_sum(made, static_cast<size_t>(copies.iterations) * copies.repeat);
  const size_t most = expander_.run().most_points;
  if (made <= most) return true;
  // Other workpackages of its parents would have further ones.
  const bool all = family.step.depend.empty() && made < most_countable;
  diagnostics.error(place_of_copies(family.step),
                    "step '" + family.step.name.value + "' would have " + (all ? "" : "at least ") +
                        std::to_string(made) + " workpackages; " + std::to_string(most) +
                        " are the most",
                    "its points, iterations and repeats, and the workpackages of the steps that it "
                    "depends on, are multiplied; --max-workpackages allows more");
  return false;
}

// Evaluates the step's `active` for all points, where it is the same for all copies of a point. One
// batch for the interpreter is faster than one request per point.
void Generator::ask_active(Family& family) const {
  const std::string& text = family.step.active.value;
  const bool always = text == "true" || text == "True" || text.empty();
  family.active.assign(family.made.points.size(), always ? Active::yes : Active::ask);
  if (always || names_workpackage(text)) return;
  std::vector<std::string> expressions;
  std::vector<size_t> indexes;
  Workpackage probe;
  probe.step = family.step_number;
  probe.parents = family.parents;
  for (size_t i = 0; i < family.made.points.size(); ++i) {
    if (family.made.errors.count(i) > 0 || !expander_.is_final(family.made.points[i])) continue;
    probe.point = family.made.points[i];
    expressions.push_back(
        active_expression(WorkpackageValues(benchmark_, expander_, probe).apply(text)));
    indexes.push_back(i);
  }
  if (!expander_.evaluator().computes()) return;
  const std::vector<Evaluation> results = expander_.evaluator().evaluate(Mode::python, expressions);
  for (size_t k = 0; k < indexes.size(); ++k) {
    if (!results[k].ok) continue;  // evaluated again later, for the message
    family.active[indexes[k]] = results[k].value == "True" ? Active::yes : Active::no;
  }
}

void Generator::make_point(Family& family, size_t point, int repetition, Diagnostics& diagnostics) {
  const Copies& copies = family.copies[point];
  bool any = false;
  for (int i = 0; i < copies.iterations; ++i) {
    Workpackage workpackage;
    workpackage.id = next_id_;
    workpackage.step = family.step_number;
    workpackage.parents = family.parents;
    workpackage.repetition = repetition;
    workpackage.iteration = family.base * copies.total() + repetition * copies.iterations + i;
    const bool last = repetition + 1 == copies.repeat && i + 1 == copies.iterations;
    workpackage.point = last ? std::move(family.made.points[point]) : family.made.points[point];
    any = make_one(family, point, workpackage, diagnostics) || any;
  }
  if (any && repetition == 0) ++points_;
}

// Returns false when the workpackage is not active or that cannot be established. The next
// workpackage then gets its id. Otherwise the sink has taken it.
bool Generator::make_one(const Family& family, size_t point, Workpackage& workpackage,
                         Diagnostics& diagnostics) {
  if (const auto error = family.made.errors.find(point); error != family.made.errors.end())
    fail_by_value(error->second, workpackage);
  const auto in_doubt = [this](int id) { return in_doubt_.count(id) > 0; };
  const std::vector<int>& parents = workpackage.parents;
  if (family.made.in_doubt || std::ranges::any_of(parents, in_doubt))
    in_doubt_.insert(workpackage.id);
  compute_own_values(family.step, workpackage);
  if (!locate_active(family, point, workpackage, diagnostics)) {
    in_doubt_.erase(workpackage.id);
    return false;
  }
  if (!in_doubt_.empty() && in_doubt(workpackage.id) && fails(workpackage))
    workpackage.outcome = {};
  ++next_id_;
  sink_.take(std::move(workpackage));
  return true;
}

// Computes the values that need the workpackage's own names. A plan leaves open what only a run can
// compute.
void Generator::compute_own_values(const Step& step, Workpackage& workpackage) {
  const bool final = expander_.is_final(workpackage.point);
  if (!final && step.depend.empty()) roots_are_final_ = false;
  if (fails(workpackage)) {
    if (purpose_ == Purpose::run || step.depend.empty()) return;
    unknown_errors_.insert(
        "step '" + step.name.value +
        "' fails, unless an earlier step makes what is missing: " + message(workpackage.outcome));
    const std::string why = message(std::exchange(workpackage.outcome, {}));
    // If every value can be computed, the problem is a rule or a type. A run cannot mend that.
    Point finished = workpackage.point;
    const NamedValues builtins = WorkpackageValues(benchmark_, expander_, workpackage).builtins();
    if (expander_.finish(step, finished, builtins).empty()) workpackage.doubt = why;
    return;
  }
  if (final) return;
  Mark place;
  const auto finish = [&](const NamedValues& builtins, const Expander::Names& later) {
    return expander_.finish(step, workpackage.point, builtins, &place, later);
  };
  if (purpose_ == Purpose::run) {
    const std::string problem = finish_and_locate(benchmark_, expander_, workpackage, finish);
    if (!problem.empty()) fail_by_value({problem, place}, workpackage);
    return;
  }
  const Point open = workpackage.point;
  if (has_children_[static_cast<size_t>(workpackage.step)]) {
    // The children inherit final values, not texts that name this workpackage's id. A value that
    // fails here may succeed in a run.
    if (finish_and_locate(benchmark_, expander_, workpackage, finish).empty()) return;
    workpackage.point = open;
  }
  std::vector<std::string> unknown;
  finish_and_locate(benchmark_, expander_, workpackage,
                    [&](const NamedValues& builtins, const Expander::Names& later) {
                      unknown = expander_.finish_for_plan(step, workpackage.point, builtins, later);
                      return std::string();
                    });
  unknown_names_[static_cast<size_t>(workpackage.step)].insert(unknown.begin(), unknown.end());
}

void Generator::leave_in_doubt(int workpackage, const std::string& cause) {
  expander_.not_computed().insert(cause);
  in_doubt_.insert(workpackage);
}

// Decides whether the workpackage is active and where it runs. A problem becomes its outcome; in a
// plan, a wrong `active` is an error of the file. A workpackage that has already failed is left out
// if its `active` is known to be false.
bool Generator::locate_active(const Family& family, size_t point, Workpackage& workpackage,
                              Diagnostics& diagnostics) {
  const Step& step = family.step;
  const bool asks = family.active[point] == Active::ask;
  if (!asks && !has_own_directory(step)) return true;
  const bool broken = family.made.errors.count(point) > 0 || fails(workpackage);
  const WorkpackageValues values(benchmark_, expander_, workpackage);
  if (asks) {
    bool active = true;
    const std::string text = values.apply(step.active);
    const bool known = expander_.evaluator().computes() || is_truth(text);
    if (!known) leave_in_doubt(workpackage.id, "'active' of step '" + step.name.value + "'");
    // A value that is not computed stands for any text.
    Status told;
    if (known || expander_.is_final(workpackage.point))
      told = evaluate_active(text, expander_.evaluator(), &active);
    if (!told && !broken) {
      if (purpose_ == Purpose::plan) {
        diagnostics.error(step.active.mark, "step '" + step.name.value + "': " + told.message());
        return false;
      }
      fail_by_value({told.message(), step.active.mark}, workpackage);
      return true;
    }
    if (told && !active) return false;
  }
  if (fails(workpackage)) return true;
  const std::string problem = locate(step, expander_, values, &workpackage);
  if (purpose_ == Purpose::run) fail_by_work_dir(step, problem, &workpackage);
  return true;
}

Status finish_planned(const Benchmark& benchmark, Expander& expander, Workpackage* workpackage) {
  const Step& step = benchmark.steps[static_cast<size_t>(workpackage->step)];
  if (!workpackage->doubt.empty()) return Status::error(workpackage->doubt);
  if (!expander.is_final(workpackage->point)) {
    const std::string problem = finish_and_locate(
        benchmark, expander, *workpackage,
        [&](const NamedValues& builtins, const Expander::Names& later) {
          return expander.finish(step, workpackage->point, builtins, nullptr, later);
        });
    if (!problem.empty()) return Status::error(problem);
  }
  if (!has_own_directory(step)) return Status::ok();
  const WorkpackageValues values(benchmark, expander, *workpackage);
  const std::string problem = locate(step, expander, values, workpackage);
  return problem.empty() ? Status::ok() : Status::error(problem);
}

std::vector<std::string> Generator::unknown() const {
  std::vector<std::string> list;
  for (size_t i = 0; i < unknown_names_.size(); ++i) {
    for (const std::string& name : unknown_names_[i]) {
      list.push_back("parameter '" + name + "' of step '" + benchmark_.steps[i].name.value +
                     "' reads what only a run can make");
    }
  }
  list.insert(list.end(), unknown_errors_.begin(), unknown_errors_.end());
  return list;
}

}  // namespace tally
