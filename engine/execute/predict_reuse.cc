#include "engine/execute/predict_reuse.h"

#include <fmt/format.h>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/setup_reuse.h"

namespace tally {
namespace {

// `here`: the current folder with a slash. Paths are shown from there.
std::string in_words(const ReuseDecision& decision, const std::string& here) {
  std::string why = decision.why;
  replace_all(why, here, "");
  switch (decision.kind) {
    case ReuseDecision::Kind::same_run:
    case ReuseDecision::Kind::wait:
      return fmt::format("shared with #{:06}", decision.of);
    case ReuseDecision::Kind::other_run:
      return "reused, " + why;
    case ReuseDecision::Kind::work:
      break;
  }
  return "will run: " + why;
}

}  // namespace

std::map<int, std::string> predict_reuse(PlannedRun& planned, const Settings& settings) {
  const Benchmark& benchmark = planned.run.benchmark();
  const Expander& expander = planned.run.expander();
  const std::string here = absolute_path("") + "/";
  std::map<int, std::string> words;
  SetupReuse reuse(benchmark, absolute_path(expander.run().rundir + "/.."), settings.fresh);
  const Environment own_base = with_programs(current_environment(), settings.programs);
  for (const Workpackage& workpackage : planned.plan.workpackages) {
    const Step& step = benchmark.steps[static_cast<size_t>(workpackage.step)];
    if (!reuses_work(step.kind)) continue;
    if (workpackage.outcome.state == State::failed) continue;
    if (!expander.is_final(workpackage.point)) {
      words[workpackage.id] = "reused or not: known only to a run";
      continue;
    }
    const WorkpackageValues values(benchmark, expander, workpackage);
    const std::string work =
        absolute_path(work_dir_of(benchmark, expander.run().rundir, workpackage));
    Environment before = own_base;
    before["PWD"] = work;
    const EnvironmentChanges changes = declared_environment(step, values, before);
    const Environment environment = with_changes(current_environment(), changes);
    const SetupContext context{benchmark, step,           values,  expander.evaluator(),
                               work,      settings.shell, changes, environment};
    ReuseDecision decision;
    const Status decided = reuse.decide(workpackage, context, &decision);
    words[workpackage.id] = decided ? in_words(decision, here) : "fails: " + decided.message();
    reuse.assume_done(workpackage.id);
  }
  return words;
}

}  // namespace tally
