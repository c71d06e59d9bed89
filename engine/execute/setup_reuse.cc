#include "engine/execute/setup_reuse.h"

#include <fmt/format.h>

#include "engine/base/files.h"
#include "engine/base/text.h"

namespace tally {

// A parent whose work is kept is identified by the hash of its inputs and by its instance. Any
// other parent is identified by its number, which has a meaning only in this run. Returns false in
// that case, and sets the reason.
bool SetupReuse::add_parents(const Workpackage& workpackage, StepInputs* inputs,
                             std::string* why) const {
  const Step& step = benchmark_.steps[static_cast<size_t>(workpackage.step)];
  bool kept = true;
  for (size_t i = 0; i < workpackage.parents.size(); ++i) {
    const std::string& name = step.depend[i].value;
    const Lineage* parent = lineage(workpackage.parents[i]);
    if (parent != nullptr && !parent->instance.empty()) {
      inputs->parents.emplace_back(name, parent->hash + " " + parent->instance);
      continue;
    }
    kept = false;
    *why = "step '" + name + "', which it depends on, is done again in every run";
    // Equal work in this run has one owner. The children of all workpackages that share the work
    // can then share theirs.
    const std::string number = std::to_string(workpackage.parents[i]);
    inputs->parents.emplace_back(name, parent != nullptr ? parent->hash : "workpackage " + number);
  }
  return kept;
}

// Adds what is not compared to the reasons of one workpackage of the run.
void SetupReuse::say_once(const StepInputs& inputs, std::string* why) {
  for (const std::string& note : inputs.notes) {
    if (told_.insert(note).second) *why += (why->empty() ? "" : "; ") + note;
  }
}

Status SetupReuse::decide(const Workpackage& workpackage, const SetupContext& context,
                          ReuseDecision* decision) {
  *decision = {};
  Open open;
  TRY(setup_inputs(context, digests_, &open.inputs));
  std::string why;
  open.keeps = add_parents(workpackage, &open.inputs, &why);
  open.hash = content_hash(open.inputs);
  const auto decided = [&](ReuseDecision::Kind kind) {
    decision->kind = kind;
    open.works = kind == ReuseDecision::Kind::work;
    if (kind != ReuseDecision::Kind::same_run) say_once(open.inputs, &decision->why);
    open_[workpackage.id] = std::move(open);
    return Status::ok();
  };
  if (!context.step.reuse) {
    open.keeps = false;
    open.hash += fmt::format(" {}", workpackage.id);  // makes the hash unique to this workpackage
    decision->why = "reuse is false";
    return decided(ReuseDecision::Kind::work);
  }
  Work& work = works_[open.hash];
  if (work.owner >= 0 && work.owner != workpackage.id) {
    decision->of = work.owner;
    if (!work.done) {
      work.waiters.push_back(workpackage.id);
      decision->kind = ReuseDecision::Kind::wait;
      return Status::ok();
    }
    if (const Lineage* of = lineage(work.owner)) open.of = *of;
    return decided(ReuseDecision::Kind::same_run);
  }
  work.owner = workpackage.id;
  if (context.step.exported) {
    open.keeps = false;
    why = "it passes on its environment, which is not kept";
  } else if (!workpackage.work_dir.empty()) {
    open.keeps = false;
    why = "its work_dir is not of this run";
  } else if (open.keeps && fresh_) {
    why = "--fresh";
  } else if (open.keeps) {
    decision->work = store_.find(open.inputs, open.hash, &why, &open.of.instance);
  }
  decision->why = why;
  if (decision->work.empty()) return decided(ReuseDecision::Kind::work);
  open.of.hash = open.hash;
  return decided(ReuseDecision::Kind::other_run);
}

void SetupReuse::restore(int id, const std::string& hash, const std::string& instance) {
  lineages_[id] = {hash, instance};
  Work& work = works_[hash];
  if (work.owner < 0) work = {id, true, {}};
}

const Lineage* SetupReuse::ended_well(const Workpackage& workpackage, const std::string& work,
                                      std::string* problem) {
  problem->clear();
  const auto found = open_.find(workpackage.id);
  if (found == open_.end()) return nullptr;
  Open& open = found->second;
  Lineage& lineage = lineages_[workpackage.id];
  lineage = open.works ? Lineage{open.hash, {}} : open.of;
  if (open.works && open.keeps) {
    if (Status s = WorkStore::seal(open.inputs, open.hash, work, &open.entry); !s) {
      *problem = s.message();
    }
    lineage.instance = open.entry.instance;
  }
  return &lineage;
}

// Keeping the work only helps later runs. A store that cannot be written does not harm this run.
Status SetupReuse::publish(int id) {
  const auto found = open_.find(id);
  if (found == open_.end() || found->second.entry.instance.empty()) return Status::ok();
  return store_.keep(found->second.entry);
}

std::vector<int> SetupReuse::release(int id, bool well) {
  const auto found = open_.find(id);
  if (found == open_.end()) return {};
  const std::string hash = found->second.hash;
  open_.erase(found);
  const auto at = works_.find(hash);
  if (at == works_.end() || at->second.owner != id) return {};
  std::vector<int> waiters = std::move(at->second.waiters);
  at->second.waiters.clear();
  if (well) {
    at->second.done = true;
  } else {
    works_.erase(at);
  }
  return waiters;
}

void SetupReuse::assume_done(int id) {
  const auto found = open_.find(id);
  if (found == open_.end()) return;
  const Open& open = found->second;
  lineages_[id] = open.works ? Lineage{open.hash, open.keeps ? "not made yet" : ""} : open.of;
  release(id, true);
}

const Lineage* SetupReuse::lineage(int id) const {
  const auto found = lineages_.find(id);
  return found == lineages_.end() ? nullptr : &found->second;
}

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
