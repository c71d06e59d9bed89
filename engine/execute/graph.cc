#include "engine/execute/graph.h"

#include <utility>

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
                           Journal& journal)
    : benchmark_(benchmark),
      expander_(expander),
      pool_(pool),
      journal_(journal),
      by_step_(benchmark.steps.size()),
      generator_(benchmark, expander, Purpose::run, *this) {}

void PackageGraph::keep(Package package) {
  const auto id = static_cast<size_t>(package.wp.id);
  if (index_.size() <= id) index_.resize(id + 1, none);
  index_[id] = packages_.size();
  by_step_[static_cast<size_t>(package.wp.step)].push_back(package.wp.id);
  packages_.push_back(std::move(package));
}

void PackageGraph::take(WorkPackage&& package) {
  taken_.push_back(package.id);
  Package record;
  record.directory = directory_of(benchmark_, package);
  Outcome& outcome = package.outcome;
  if (outcome.state == State::failed && !outcome.place.known()) {
    outcome.place = benchmark_.steps[static_cast<size_t>(package.step)].name.mark;
  }
  record.wp = std::move(package);
  keep(std::move(record));
}

Status PackageGraph::start(bool* restored) {
  if (Status s = restore(); !s) return s;
  *restored = restored_;
  if (restored_) return Status::ok();
  Diagnostics diagnostics;
  generator_.make_roots(diagnostics);
  if (Status s = first_error(diagnostics); !s) return s;
  const std::vector<int> created = std::exchange(taken_, {});
  if (Status s = journal_.begin(); !s) return s;
  if (Status s = record(created); !s) return s;
  return journal_.commit();
}

Status PackageGraph::restore() {
  Diagnostics diagnostics;
  std::vector<Journal::Stored> all;
  if (Status s = journal_.packages(&all); !s) return s;
  for (Journal::Stored& stored : all) {
    restored_ = true;
    const int step = step_index(benchmark_, stored.step);
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
    package.wp.directory = stored.directory;
    package.wp.work_dir = std::move(stored.work_dir);
    package.directory = std::move(stored.directory);
    package.outputs = std::move(stored.outputs);
    package.job_name = std::move(stored.job_name);
    package.job_id = std::move(stored.job_id);
    package.operations_done = stored.operations_done;
    package.prepared = stored.prepared;
    if (!stored.environment.empty()) {
      package.environment =
          std::make_unique<EnvironmentChanges>(unpack_changes(stored.environment));
    }
    generator_.adopt(&package.wp, diagnostics);
    if (Status s = first_error(diagnostics); !s) return s;
    keep(std::move(package));
  }
  return Status::ok();
}

Status PackageGraph::make_children(int package, std::vector<int>* created) {
  Diagnostics diagnostics;
  generator_.make_children(package, diagnostics);
  created->insert(created->end(), taken_.begin(), taken_.end());
  taken_.clear();
  return first_error(diagnostics);
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
    if (Status s =
            journal_.add(package.wp, pool_, definitions(package), step_of(package).name.value,
                         package.directory, package.wp.work_dir);
        !s) {
      return s;
    }
  }
  return Status::ok();
}

std::string PackageGraph::folder(const Package& package) const {
  return run().rundir + "/" + package.directory;
}

std::string PackageGraph::work_dir(const Package& package) const {
  return work_dir_of(benchmark_, run().rundir, package.wp);
}

PackageValues PackageGraph::values(const Package& package, const char* status) const {
  return {benchmark_, expander_, package.wp, status};
}

bool PackageGraph::complete(int step) const {
  for (const Text& name : benchmark_.steps[static_cast<size_t>(step)].depend) {
    const int parent = step_index(benchmark_, name.value);
    if (parent < 0) continue;
    if (!complete(parent)) return false;
    for (const int id : of_step(parent)) {
      if (!ended((*this)[id].wp.outcome.state)) return false;
    }
  }
  return true;
}

}  // namespace tally
