#include "engine/execute/graph.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/execute/run_directory.h"
#include "engine/execute/substitute_files.h"

namespace tally {
namespace {

Status first_error(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.severity == Severity::error) {
      return Status::error(diagnostic.message +
                           (diagnostic.hint.empty() ? "" : " (" + diagnostic.hint + ")"));
    }
  }
  return Status::ok();
}

bool ended(State state) {
  return finished_well(state) || state == State::failed || state == State::lost;
}

}  // namespace

PackageGraph::PackageGraph(const Benchmark& benchmark, Expander& expander, TextPool& pool,
                           Evaluator& evaluator, Journal& journal, const RunInfo& run)
    : benchmark_(benchmark),
      expander_(expander),
      pool_(pool),
      evaluator_(evaluator),
      journal_(journal),
      run_(run),
      by_step_(benchmark.steps.size()),
      finished_(benchmark, expander),
      combinations_(benchmark.steps.size()) {}

int PackageGraph::step_index(const std::string& name) const {
  for (size_t i = 0; i < benchmark_.steps.size(); ++i) {
    if (benchmark_.steps[i].name.value == name) return static_cast<int>(i);
  }
  return -1;
}

void PackageGraph::keep(Package package) {
  const auto id = static_cast<size_t>(package.wp.id);
  if (index_.size() <= id) index_.resize(id + 1, none);
  index_[id] = packages_.size();
  by_step_[static_cast<size_t>(package.wp.step)].push_back(package.wp.id);
  next_id_ = std::max(next_id_, package.wp.id + 1);
  packages_.push_back(std::move(package));
}

Status PackageGraph::start(bool* restored) {
  if (Status s = restore(); !s) return s;
  *restored = restored_;
  if (restored_) return Status::ok();
  std::vector<int> created;
  for (size_t i = 0; i < benchmark_.steps.size(); ++i) {
    if (!benchmark_.steps[i].depend.empty()) continue;
    if (Status s = make_packages(static_cast<int>(i), {}, &created); !s) return s;
  }
  if (Status s = journal_.begin(); !s) return s;
  if (Status s = record(created); !s) return s;
  return journal_.commit();
}

Status PackageGraph::restore() {
  for (Journal::Stored& stored : journal_.packages()) {
    restored_ = true;
    const int step = step_index(stored.step);
    if (step < 0) {
      return Status::error("workpackage " + std::to_string(stored.package.id) +
                           " belongs to step '" + stored.step +
                           "', which the input file no longer has; continue with the " +
                           "file the run was started with");
    }
    Package package;
    package.wp = std::move(stored.package);
    package.wp.step = step;
    for (size_t i = 0; i < stored.parameters.size(); ++i) {
      const auto& [name, value] = stored.parameters[i];
      Binding binding{};
      if (!expander_.restore(stored.definitions[i], value, stored.index[i], &binding)) {
        return Status::error("workpackage " + std::to_string(package.wp.id) +
                             " has the parameter '" + name +
                             "', which the input file no longer defines; continue with the " +
                             "file the run was started with");
      }
      package.wp.point.bindings.push_back(binding);
    }
    package.directory = std::move(stored.directory);
    package.work_dir = std::move(stored.work_dir);
    package.outputs = std::move(stored.outputs);
    package.job_name = std::move(stored.job_name);
    package.job_id = std::move(stored.job_id);
    package.operations_done = stored.operations_done;
    package.prepared = stored.prepared;
    if (!stored.environment.empty()) {
      package.environment =
          std::make_unique<EnvironmentChanges>(unpack_changes(stored.environment));
    }
    if (!package.wp.parents.empty()) {
      combinations_[static_cast<size_t>(step)].insert(package.wp.parents);
    }
    if (!step_of(package).repeat.value.empty()) {
      Copies copies;
      if (Status s = copies_of(package, &copies); !s) return s;
      package.wp.repetition = package.wp.iteration % copies.total() / copies.iterations;
    }
    keep(std::move(package));
  }
  return Status::ok();
}

Status PackageGraph::make_children(int package, std::vector<int>* created) {
  const std::string& name = step_of((*this)[package]).name.value;
  finished_.add((*this)[package].wp);
  for (size_t i = 0; i < benchmark_.steps.size(); ++i) {
    const Step& step = benchmark_.steps[i];
    if (std::none_of(step.depend.begin(), step.depend.end(),
                     [&](const Text& parent) { return parent.value == name; })) {
      continue;
    }
    for (const std::vector<int>& parents :
         parent_combinations(benchmark_, step, (*this)[package].wp, finished_)) {
      if (restored_ && combinations_[i].count(parents) != 0) continue;
      if (Status s = make_packages(static_cast<int>(i), parents, created); !s) return s;
    }
  }
  return Status::ok();
}

Status PackageGraph::copies_of(const Package& package, Copies* copies) const {
  const PackageValues known = values(package);
  return count_copies(step_of(package), known.lookup(), copies);
}

Status PackageGraph::make_packages(int step_number, const std::vector<int>& parents,
                                   std::vector<int>* created) {
  const Step& step = benchmark_.steps[static_cast<size_t>(step_number)];
  std::vector<const Point*> points;
  for (const int id : parents) points.push_back(&(*this)[id].wp.point);
  Diagnostics diagnostics;
  const StepPoints expanded = expander_.expand(step, points, diagnostics);
  if (Status s = first_error(diagnostics); !s) return s;
  if (expanded.points.empty()) return Status::ok();
  std::vector<ParentIteration> iterations;
  for (const int id : parents) {
    const Package& parent = (*this)[id];
    Copies copies;
    if (Status s = copies_of(parent, &copies); !s) return s;
    iterations.push_back({step_of(parent).name.value, parent.wp.iteration, copies.total()});
  }
  const int base = iteration_base(std::move(iterations));
  std::vector<Copies> copies(expanded.points.size());
  const bool fixed = !has_reference(step.iterations.value) && !has_reference(step.repeat.value);
  int repeat = 1;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (fixed && i > 0) {
      copies[i] = copies[0];
      continue;
    }
    Package probe;
    probe.wp.step = step_number;
    probe.wp.point = expanded.points[i];
    if (Status s = copies_of(probe, &copies[i]); !s) return s;
    repeat = std::max(repeat, copies[i].repeat);
  }
  // All points once, then all again.
  for (int repetition = 0; repetition < repeat; ++repetition) {
    for (size_t i = 0; i < copies.size(); ++i) {
      if (repetition >= copies[i].repeat) continue;
      const int first = base * copies[i].total() + repetition * copies[i].iterations;
      for (int n = 0; n < copies[i].iterations; ++n) {
        if (Status s = make_package(step_number, parents, expanded.points[i], expanded.errors[i],
                                    first + n, repetition, created);
            !s) {
          return s;
        }
      }
    }
  }
  return Status::ok();
}

Status PackageGraph::make_package(int step_number, const std::vector<int>& parents,
                                  const Point& point, const std::string& error, int iteration,
                                  int repetition, std::vector<int>* created) {
  const Step& step = benchmark_.steps[static_cast<size_t>(step_number)];
  Package package;
  package.wp.id = next_id_;
  package.wp.step = step_number;
  package.wp.point = point;
  package.wp.parents = parents;
  package.wp.iteration = iteration;
  package.wp.repetition = repetition;
  package.directory = package_directory_name(next_id_, step.name.value, "");
  std::string problem = error;
  if (problem.empty() && !expander_.is_final(package.wp.point)) {
    problem = expander_.finish(step, package.wp.point, values(package).builtins());
  }
  if (problem.empty() &&
      (step.active.value != "true" || !step.suffix.value.empty() || !step.work_dir.value.empty())) {
    const PackageValues known = values(package);
    bool active = true;
    if (Status s = evaluate_active(known.apply(step.active), evaluator_, &active); !s) {
      problem = s.message();
    }
    // An inactive package never was: its id goes to the next.
    if (!active) return Status::ok();
    package.directory = package_directory_name(next_id_, step.name.value, known.apply(step.suffix));
    if (!step.work_dir.value.empty()) {
      package.work_dir = absolute_path(known.path(step.work_dir), run_.home);
      if (const std::string name = unknown_variable(package.work_dir); !name.empty()) {
        problem = "work_dir \"" + package.work_dir + "\": " + name +
                  " is neither a parameter nor in the environment";
      }
    }
  }
  if (!problem.empty()) {
    package.wp.state = State::failed;
    package.wp.note = problem;
  }
  created->push_back(package.wp.id);
  keep(std::move(package));
  return Status::ok();
}

std::vector<std::string> PackageGraph::definitions(const Package& package) const {
  std::vector<std::string> keys;
  keys.reserve(package.wp.point.bindings.size());
  for (const Binding& binding : package.wp.point.bindings) {
    keys.push_back(expander_.definition_key(binding));
  }
  return keys;
}

Status PackageGraph::record(const std::vector<int>& created) {
  for (const int id : created) {
    const Package& package = (*this)[id];
    if (Status s = journal_.add(package.wp, pool_, definitions(package),
                                step_of(package).name.value, package.directory, package.work_dir);
        !s) {
      return s;
    }
  }
  return Status::ok();
}

std::string PackageGraph::folder(const Package& package) const {
  return run_.rundir + "/" + package.directory;
}

std::string PackageGraph::work_dir(const Package& package) const {
  return package.work_dir.empty() ? folder(package) + "/work" : package.work_dir;
}

PackageValues PackageGraph::values(const Package& package, const char* status) const {
  std::vector<ParentName> parents;
  for (const int id : package.wp.parents) {
    const Package& parent = (*this)[id];
    parents.push_back({step_of(parent).name.value, id});
  }
  return {run_, step_of(package), package.wp, pool_, expander_, parents, work_dir(package), status};
}

bool PackageGraph::complete(int step) const {
  for (const Text& name : benchmark_.steps[static_cast<size_t>(step)].depend) {
    const int parent = step_index(name.value);
    if (parent < 0) continue;
    if (!complete(parent)) return false;
    for (const int id : of_step(parent)) {
      if (!ended((*this)[id].wp.state)) return false;
    }
  }
  return true;
}

}  // namespace tally
