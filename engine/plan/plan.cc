#include "engine/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/plan/planned_run.h"
#include "engine/workpackage/generator.h"
#include "engine/workspace/substitute_files.h"

namespace tally {
namespace {

class List : public WorkpackageSink {
 public:
  explicit List(std::vector<Workpackage>& workpackages) : workpackages_(workpackages) {}
  void expect(size_t more) override {
    const size_t size = workpackages_.size() + more;
    // At least twice the room: many small families must not move everything each time.
    if (const size_t room = workpackages_.capacity(); size > room)
      workpackages_.reserve(std::max(size, 2 * room));
  }
  void take(Workpackage&& workpackage) override { workpackages_.push_back(std::move(workpackage)); }
  const Workpackage& at(int id) const override { return workpackages_[static_cast<size_t>(id)]; }

 private:
  std::vector<Workpackage>& workpackages_;
};

}  // namespace

// Simulates a sequential run in which everything succeeds. Workpackages finish in the order in
// which they were made.
Plan make_plan(const Benchmark& benchmark, Expander& expander, Diagnostics& diagnostics) {
  Plan plan;
  plan.benchmark = &benchmark;
  List list(plan.workpackages);
  Generator generator(benchmark, expander, Purpose::plan, list);
  generator.make_roots(diagnostics);
  if (generator.roots_are_final()) plan.first = plan.workpackages.size();
  for (size_t next = 0; next < plan.workpackages.size() && !diagnostics.has_errors(); ++next) {
    if (plan.workpackages[next].outcome.state == State::failed) continue;
    generator.make_children(static_cast<int>(next), diagnostics);
  }
  plan.excluded = generator.take_excluded();
  plan.unknown = generator.unknown();
  plan.not_computed = expander.not_computed();
  plan.in_doubt = generator.take_in_doubt();
  plan.points = generator.points();
  plan.repeats = generator.repeats();
  return plan;
}

namespace {

// Whether a plan would run the user's commands. A program that computes a parameter may be slow or
// have side effects.
bool runs_commands(const Benchmark& benchmark) {
  for (const Parameter& parameter : all_parameters(benchmark)) {
    if (parameter.mode == Mode::shell || parameter.mode == Mode::perl) return true;
  }
  return false;
}

// Whether a run of the benchmark may submit jobs, because a run step's platform names a scheduler.
bool may_submit(const Benchmark& benchmark) {
  const bool launches = std::ranges::any_of(benchmark.steps, [](const Step& step) {
    return step.kind == StepKind::run && !step.launch.value.empty();
  });
  if (!launches) return false;
  for (const Parameter& p : all_parameters(benchmark)) {
    if (p.name.value == "scheduler" && strip(p.value.value) != "local") return true;
  }
  return false;
}

}  // namespace

void plan_and_check(PlannedRun& planned, bool needs_plan, Diagnostics& diagnostics) {
  const Benchmark& benchmark = planned.run.benchmark();
  const bool computes = planned.run.evaluator().computes();
  if (computes && !needs_plan && !may_submit(benchmark) && runs_commands(benchmark)) return;
  planned.plan = make_plan(benchmark, planned.run.expander(), diagnostics);
  if (!diagnostics.has_errors()) check_planned(planned, diagnostics);
  if (!diagnostics.has_errors()) {
    planned.estimate = estimate_jobs(planned.plan, planned.run.expander());
    // The known part of the estimate may be too much. The part that is not computed may not.
    if (!computes) planned.estimate.unknown = 0;
  }
}

void start_with_plan(PlannedRun& planned) {
  std::vector<Workpackage> first = std::move(planned.plan.workpackages);
  first.erase(first.begin() + static_cast<std::ptrdiff_t>(planned.plan.first), first.end());
  planned.plan = {};
  planned.run.start_with(std::move(first));
}

namespace {

// Whether the source is the same for every workpackage and outside the work directory.
bool is_constant(const FileCopy& entry) {
  return !entry.internal && entry.active.value == "true" && !has_dollar(entry.source.value) &&
         !has_dollar(entry.source_dir) && !has_dollar(entry.file_path_ref) &&
         !has_dollar(entry.target.value);
}

void check_set(const FileSet& set, const std::string& step, bool first, Diagnostics& diagnostics) {
  for (const auto& entry : set.entries) {
    const auto* copy = std::get_if<FileCopy>(&entry);
    if (copy == nullptr) return;  // a prepare command may create the files that follow
    if (!is_constant(*copy)) continue;
    std::vector<PlannedFile> files;
    const Status found = list_files(
        *copy, [](std::string_view) { return nullptr; }, "", &files);
    if (found) continue;
    const std::string message = fmt::format("step '{}': {}", step, found.message());
    if (first) {
      diagnostics.error(copy->source.mark, message,
                        "relative paths start from the input file's folder");
    } else {
      diagnostics.warning(copy->source.mark, message,
                          "the step waits for no other: does one that runs before make it?");
    }
  }
}

}  // namespace

void check_sources(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const Step& step : benchmark.steps) {
    if (!step.depend.empty() || step.active.value != "true") continue;
    for (const Text& use : step.use) {
      for (const std::string& name : split_strip(use.value, ",")) {
        const auto set = benchmark.file_sets.find(name);
        if (set == benchmark.file_sets.end()) continue;
        check_set(set->second, step.name.value, &step == &benchmark.steps.front(), diagnostics);
      }
    }
  }
}

}  // namespace tally
