#include "engine/execute/graph.h"

#include <algorithm>
#include <cstdlib>

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

// A count a step asks for, at least 1.
Status read_count(const char* what, const Step& step, const std::string& text, int* count) {
  char* end = nullptr;
  const std::string trimmed(strip(text));
  const long number = strtol(trimmed.c_str(), &end, 10);
  if (trimmed.empty() || *end != '\0' || number < 1 || number > 100000000) {
    return Status::error("step '" + step.name.value + "': " + what + "=\"" + trimmed +
                         "\" is not a whole number of at least 1");
  }
  *count = static_cast<int>(number);
  return Status::ok();
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
    keep(std::move(package));
  }
  return Status::ok();
}

Status PackageGraph::make_children(int package, std::vector<int>* created) {
  const Step& parent_step = step_of((*this)[package]);
  for (size_t i = 0; i < benchmark_.steps.size(); ++i) {
    const Step& step = benchmark_.steps[i];
    std::vector<std::vector<int>> choices;
    bool concerned = false;
    for (const Text& name : step.depend) {
      if (name.value == parent_step.name.value) {
        concerned = true;
        choices.push_back({package});
        continue;
      }
      std::vector<int> done;
      const int other = step_index(name.value);
      if (other >= 0) {
        for (const int id : of_step(other)) {
          if (finished_well((*this)[id].wp.state)) done.push_back(id);
        }
      }
      choices.push_back(std::move(done));
    }
    if (!concerned) continue;
    // Every combination with one parent of each step, the first step slowest.
    std::vector<size_t> at(choices.size(), 0);
    bool any =
        std::none_of(choices.begin(), choices.end(), [](const auto& c) { return c.empty(); });
    while (any) {
      std::vector<int> parents;
      for (size_t k = 0; k < choices.size(); ++k) parents.push_back(choices[k][at[k]]);
      if (!restored_ || combinations_[i].count(parents) == 0) {
        if (Status s = make_packages(static_cast<int>(i), parents, created); !s) return s;
      }
      size_t k = choices.size();
      while (k > 0 && ++at[k - 1] == choices[k - 1].size()) at[--k] = 0;
      any = k > 0;
    }
  }
  return Status::ok();
}

Status PackageGraph::make_packages(int step_number, const std::vector<int>& parents,
                                   std::vector<int>* created) {
  const Step& step = benchmark_.steps[static_cast<size_t>(step_number)];
  std::vector<const Point*> points;
  for (const int id : parents) points.push_back(&(*this)[id].wp.point);
  Diagnostics diagnostics;
  const StepPoints expanded = expander_.expand(step, points, diagnostics);
  if (Status s = first_error(diagnostics); !s) return s;
  // A child numbers its iterations within all combinations of its parents' iterations.
  std::vector<int> by_id = parents;
  std::sort(by_id.begin(), by_id.end());
  int base = 0;
  for (const int id : by_id) {
    int iterations = 1;
    const Package& parent = (*this)[id];
    if (Status s = read_count("iterations", step_of(parent),
                              values(parent).apply(step_of(parent).iterations), &iterations);
        !s) {
      return s;
    }
    base = base * iterations + parent.wp.iteration;
  }
  for (size_t i = 0; i < expanded.points.size(); ++i) {
    int iterations = 1;
    if (has_reference(step.iterations.value)) {
      WorkPackage probe;
      probe.point = expanded.points[i];
      const PackageValues values(run_, step, probe, pool_, expander_, {}, "");
      if (Status s = read_count("iterations", step, values.apply(step.iterations), &iterations);
          !s) {
        return s;
      }
    } else if (Status s = read_count("iterations", step, step.iterations.value, &iterations); !s) {
      return s;
    }
    const std::string error = i < expanded.errors.size() ? expanded.errors[i] : std::string();
    for (int n = 0; n < iterations; ++n) {
      if (Status s = make_package(step_number, parents, expanded.points[i], error,
                                  base * iterations + n, created);
          !s) {
        return s;
      }
    }
  }
  return Status::ok();
}

Status PackageGraph::make_package(int step_number, const std::vector<int>& parents,
                                  const Point& point, const std::string& error, int iteration,
                                  std::vector<int>* created) {
  const Step& step = benchmark_.steps[static_cast<size_t>(step_number)];
  Package package;
  package.wp.id = next_id_;
  package.wp.step = step_number;
  package.wp.point = point;
  package.wp.parents = parents;
  package.wp.iteration = iteration;
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
    if (!step.work_dir.value.empty())
      package.work_dir = absolute_path(known.apply(step.work_dir), run_.home);
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
