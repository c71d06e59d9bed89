#include "engine/execute/graph.h"

#include <algorithm>
#include <utility>

#include "engine/base/files.h"

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

}  // namespace

WorkpackageGraph::WorkpackageGraph(Run& run)
    : run_(run),
      benchmark_(run.benchmark()),
      expander_(run.expander()),
      journal_(run.journal()),
      run_dir_(absolute_path(run.directory().path)),
      by_step_(benchmark_.steps.size()),
      generator_(benchmark_, expander_, Purpose::run, *this),
      turns_(benchmark_, run.texts()) {}

void WorkpackageGraph::keep(WorkpackageNode workpackage) {
  const auto id = static_cast<size_t>(workpackage.wp.id);
  if (index_.size() <= id) index_.resize(id + 1, none);
  index_[id] = workpackages_.size();
  by_step_[static_cast<size_t>(workpackage.wp.step)].push_back(workpackage.wp.id);
  ++counts_[static_cast<size_t>(workpackage.wp.outcome.state)];
  workpackages_.push_back(std::move(workpackage));
}

void WorkpackageGraph::drop(int id) {
  const Workpackage& workpackage = (*this)[id].wp;
  --counts_[static_cast<size_t>(workpackage.outcome.state)];
  std::vector<int>& ids = by_step_[static_cast<size_t>(workpackage.step)];
  std::erase(ids, id);
  index_[static_cast<size_t>(id)] = none;
}

void WorkpackageGraph::take(Workpackage&& workpackage) {
  taken_.push_back(workpackage.id);
  WorkpackageNode record;
  record.directory = folder_name_of(benchmark_, workpackage);
  Outcome& outcome = workpackage.outcome;
  if (outcome.state == State::failed && !outcome.place.known()) {
    outcome.place = benchmark_.steps[static_cast<size_t>(workpackage.step)].name.mark;
  }
  record.wp = std::move(workpackage);
  keep(std::move(record));
}

Status WorkpackageGraph::start(bool* restored) {
  TRY(restore());
  *restored = restored_;
  if (restored_) return Status::ok();
  Diagnostics diagnostics;
  std::vector<Workpackage> planned = run_.take_first();
  for (Workpackage& workpackage : planned) generator_.take_root(std::move(workpackage));
  if (planned.empty()) generator_.make_roots(diagnostics);
  TRY(first_error(diagnostics));
  const std::vector<int> created = std::exchange(taken_, {});
  return journal_.transaction([&] { return record(created); });
}

Status WorkpackageGraph::restore() {
  Diagnostics diagnostics;
  std::vector<Journal::Stored> all;
  TRY(journal_.workpackages(&all));
  for (Journal::Stored& stored : all) {
    restored_ = true;
    const int step = step_index(benchmark_, stored.step);
    if (step < 0) {
      return Status::error("workpackage " + std::to_string(stored.workpackage.id) +
                           " belongs to step '" + stored.step +
                           "', which the input file no longer has; continue with the " +
                           "file the run was started with");
    }
    WorkpackageNode workpackage;
    workpackage.wp = std::move(stored.workpackage);
    workpackage.wp.step = step;
    for (size_t i = 0; i < stored.parameters.size(); ++i) {
      const auto& [name, value] = stored.parameters[i];
      Binding binding{};
      if (!expander_.restore(stored.definitions[i], value, stored.index[i], &binding)) {
        return Status::error("workpackage " + std::to_string(workpackage.wp.id) +
                             " has the parameter '" + name +
                             "', which the input file no longer defines; continue with the " +
                             "file the run was started with");
      }
      workpackage.wp.point.bindings.push_back(binding);
    }
    workpackage.wp.directory = stored.directory;
    workpackage.wp.work_dir = std::move(stored.work_dir);
    workpackage.directory = std::move(stored.directory);
    workpackage.outputs = std::move(stored.outputs);
    workpackage.job_name = std::move(stored.job_name);
    workpackage.job_id = std::move(stored.job_id);
    workpackage.operations_done = stored.operations_done;
    workpackage.prepared = stored.prepared;
    workpackage.restored = true;
    if (!stored.environment.empty()) {
      workpackage.environment =
          std::make_unique<EnvironmentChanges>(unpack_changes(stored.environment));
    }
    generator_.adopt(&workpackage.wp, diagnostics);
    TRY(first_error(diagnostics));
    keep(std::move(workpackage));
  }
  return Status::ok();
}

Status WorkpackageGraph::make_children(int workpackage, std::vector<int>* created) {
  Diagnostics diagnostics;
  generator_.make_children(workpackage, diagnostics);
  created->insert(created->end(), taken_.begin(), taken_.end());
  taken_.clear();
  return first_error(diagnostics);
}

std::vector<std::string> WorkpackageGraph::definitions(const WorkpackageNode& workpackage) const {
  std::vector<std::string> keys;
  keys.reserve(workpackage.wp.point.bindings.size());
  for (const Binding& binding : workpackage.wp.point.bindings) {
    keys.push_back(expander_.definition_key(binding));
  }
  return keys;
}

Status WorkpackageGraph::record(const std::vector<int>& created) {
  for (const int id : created) {
    const WorkpackageNode& workpackage = (*this)[id];
    TRY(journal_.add(workpackage.wp, run_.texts(),
                     {definitions(workpackage), step_of(workpackage).name.value,
                      workpackage.directory, workpackage.wp.work_dir}));
  }
  return Status::ok();
}

void WorkpackageGraph::set_state(Workpackage* workpackage, Outcome outcome) {
  --counts_[static_cast<size_t>(workpackage->outcome.state)];
  ++counts_[static_cast<size_t>(outcome.state)];
  workpackage->outcome = std::move(outcome);
}

Status WorkpackageGraph::transition(int id, Outcome outcome) {
  Workpackage& workpackage = (*this)[id].wp;
  set_state(&workpackage, std::move(outcome));
  return journal_.set_outcome(id, workpackage.outcome);
}

void WorkpackageGraph::look_again(int id) {
  set_state(&(*this)[id].wp, in_state(State::running));
}

Status WorkpackageGraph::start_anew(int id, const OutputSizes& outputs) {
  WorkpackageNode& node = (*this)[id];
  set_state(&node.wp, {});
  node.wp.cycle = 0;
  node.operations_done = 0;
  node.prepared = false;
  node.environment.reset();
  node.outputs = outputs;
  node.job_name.clear();
  node.job_id.clear();
  return journal_.transaction([&] {
    TRY(journal_.reset(id));
    return outputs.empty() ? Status::ok() : journal_.outputs_before(id, outputs);
  });
}

std::string WorkpackageGraph::folder(const WorkpackageNode& workpackage) const {
  return run_dir_ + "/" + workpackage.directory;
}

std::string WorkpackageGraph::work_dir(const WorkpackageNode& workpackage) const {
  return absolute_path(work_dir_of(benchmark_, run_dir_, workpackage.wp));
}

WorkpackageValues WorkpackageGraph::values(const WorkpackageNode& workpackage,
                                           const char* status) const {
  return {benchmark_, expander_, workpackage.wp, status};
}

bool WorkpackageGraph::complete(int step) const {
  for (const Text& name : benchmark_.steps[static_cast<size_t>(step)].depend) {
    const int parent = step_index(benchmark_, name.value);
    if (parent < 0) continue;
    if (!complete(parent)) return false;
    for (const int id : of_step(parent)) {
      if (!has_ended((*this)[id].wp.outcome.state)) return false;
    }
  }
  return true;
}

}  // namespace tally
