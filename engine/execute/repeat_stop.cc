#include "engine/execute/repeat_stop.h"

namespace tally {

Status RepeatStop::decide(int id, bool* dropped) {
  *dropped = false;
  const WorkpackageNode& workpackage = context_.graph[id];
  const RepeatUntil& until = context_.graph.step_of(workpackage).until;
  RepeatJudge* const judge = context_.parts.repeats;
  if (until.metric.value.empty() || judge == nullptr) return Status::ok();
  const int round = workpackage.wp.repetition;
  if (round < until.warmup + until.min) return Status::ok();
  // The results are read once a round, so that the cost stays linear in the workpackages.
  if (round != asked_) {
    asked_ = round;
    std::vector<int> ids;
    const Status read = judge->not_needed(context_.run, &ids);
    if (!read) context_.log.write("repeat until: all repeats run: " + read.message());
    if (!read) ids.clear();
    not_needed_ = {ids.begin(), ids.end()};
  }
  if (not_needed_.count(id) == 0) return Status::ok();
  context_.log.write(workpackage.directory + ": not needed: '" + until.metric.value +
                     "' is precise enough");
  if (Status s = context_.run.journal().remove(id); !s) return s;
  context_.graph.drop(id);
  ++dropped_;
  *dropped = true;
  return Status::ok();
}

}  // namespace tally
