#include "tests/engine/workpackage/planned.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "engine/base/variables.h"
#include "engine/expand/substitute.h"
#include "engine/plan/plan.h"

namespace tally::testing {

ByName by_name(const NamedValues& values) {
  return {values.begin(), values.end()};
}

Planned::Planned(const Benchmark& benchmark, const RunInfo& info, Evaluator& evaluator,
                 const std::set<std::string>& tags)
    : benchmark_(benchmark), expander_(benchmark, info, evaluator, pool_, tags) {}

void Planned::take_error(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.severity == Severity::error && error_.empty()) error_ = diagnostic.message;
  }
}

bool Planned::more_than(size_t most, const Benchmark& benchmark, const RunInfo& info,
                        Evaluator& evaluator, const std::set<std::string>& tags) {
  Planned counted(benchmark, info, evaluator, tags);
  counted.most_ = most;
  Diagnostics diagnostics;
  Generator generator(benchmark, counted.expander_, Purpose::plan, counted);
  try {
    generator.make_roots(diagnostics);
    for (size_t i = 0; i < counted.workpackages_.size() && !diagnostics.has_errors(); ++i) {
      generator.make_children(static_cast<int>(i), diagnostics);
    }
  } catch (const TooMany&) {
    return true;
  }
  return false;
}

void Planned::all_at_once() {
  Diagnostics diagnostics;
  workpackages_ = make_plan(benchmark_, expander_, diagnostics).workpackages;
  take_error(diagnostics);
}

void Planned::in_order(const std::vector<std::vector<int>>& finished) {
  Diagnostics diagnostics;
  for (size_t session = 0; session < finished.size(); ++session) {
    Generator generator(benchmark_, expander_, Purpose::plan, *this);
    if (workpackages_.empty())
      generator.make_roots(diagnostics);
    else
      adopt_all(generator, diagnostics);
    for (const int id : finished[session]) {
      if (diagnostics.has_errors() || static_cast<size_t>(id) >= workpackages_.size()) break;
      generator.make_children(id, diagnostics);
      workpackages_[static_cast<size_t>(id)].outcome.state = State::done;
    }
  }
  take_error(diagnostics);
}

void Planned::adopt_all(Generator& generator, Diagnostics& diagnostics) {
  for (Workpackage& workpackage : workpackages_) {
    const int repetition = workpackage.repetition;
    generator.adopt(&workpackage, diagnostics);
    if (workpackage.repetition != repetition && error_.empty()) {
      error_ = "a continued run takes workpackage " + std::to_string(workpackage.id) +
               " for another repetition";
    }
  }
  for (size_t id = 0; id < workpackages_.size() && !diagnostics.has_errors(); ++id) {
    if (workpackages_[id].outcome.state == State::done) {
      generator.make_children(static_cast<int>(id), diagnostics);
    }
  }
}

namespace {

// The environment that the first command finds, against the engine's own.
EnvironmentChanges first_environment(const Planned& planned, const Finished& one,
                                     const WorkpackageValues& values,
                                     const std::vector<Finished>& finished) {
  EnvironmentChanges changes;
  const Step& step = planned.step_of(one.workpackage);
  for (const int parent : one.workpackage.parents) {
    const Finished& other = finished[static_cast<size_t>(parent)];
    if (!planned.step_of(other.workpackage).exported) continue;
    for (const auto& [name, value] : other.environment) changes[name] = value;
  }
  for (const auto& [name, value] : one.exported) changes[name] = value;
  for (const Text& name : step.env_unset) changes[values.apply(name)] = std::nullopt;
  const EnvironmentChanges before = changes;  // the entries do not see each other
  const auto variable = [&](const std::string& name) -> std::optional<std::string> {
    if (const auto changed = before.find(name); changed != before.end()) return changed->second;
    const char* own = std::getenv(name.c_str());
    return own == nullptr ? std::nullopt : std::optional<std::string>(own);
  };
  for (const auto& [name, value] : step.env)
    changes[values.apply(name)] =
        expand_variables(substitute_parameters(value.value, values.lookup()), variable);
  return changes;
}

}  // namespace

Finished finish(Planned& planned, const Workpackage& workpackage,
                const std::vector<Finished>& finished) {
  Finished one;
  one.workpackage = workpackage;
  one.error = message(workpackage.outcome);
  const Benchmark& benchmark = planned.benchmark();
  Expander& expander = planned.expander();
  const Step& step = planned.step_of(workpackage);
  if (one.error.empty()) {
    if (const Status s = finish_planned(benchmark, expander, &one.workpackage); !s) {
      one.error = s.message();
    }
  }
  if (!one.error.empty()) return one;
  Workpackage now = one.workpackage;
  const int cycles = std::max(
      1, static_cast<int>(strtol(
             WorkpackageValues(benchmark, expander, now).apply(step.cycles).c_str(), nullptr, 10)));
  for (int cycle = 0; cycle < cycles; ++cycle) {
    now.cycle = cycle;
    if (cycle > 0) {
      const NamedValues builtins = WorkpackageValues(benchmark, expander, now).builtins();
      if (!expander.update(step, now.point, builtins).empty()) break;
    }
    WorkpackageValues values(benchmark, expander, now);
    one.by_cycle.push_back(by_name(values.all()));
    if (cycle == 0) {
      one.exported = values.exported();
      one.environment = first_environment(planned, one, values, finished);
    }
    values.drop_workpackage_builtins();
    one.of_shared.push_back(by_name(values.all()));
  }
  return one;
}

}  // namespace tally::testing
