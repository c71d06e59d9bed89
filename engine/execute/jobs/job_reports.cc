// Determines the state of a submitted job from its own files and from the scheduler.
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/execute/jobs/jobs.h"

namespace tally {
namespace {

using std::chrono::milliseconds;

std::string in_brackets(const std::string& text) {
  return text.empty() ? text : " (" + text + ")";
}

}  // namespace

void JobFollower::look(Clock::time_point now, std::vector<JobEnd>* ended) {
  for (auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage != Stage::follow) continue;
    std::optional<JobExit> exit;
    if (!exit_left(tracked.job.marks, &exit)) continue;  // it is looked at again
    if (!exit || tracked.requeued || of_another_start(tracked, *exit)) {
      tracked.exit.reset();
    } else if (!tracked.exit || tracked.exit->code != exit->code ||
               tracked.exit->restarts != exit->restarts ||
               tracked.exit->preempted != exit->preempted) {
      take_exit(tracked, *exit, now, ended);
    } else if (is_alone(tracked, now)) {
      ended->push_back(end_with_exit(tracked));
    }
  }
}

// Whether the exit status decides alone, because the scheduler says nothing about the job. A
// scheduler that says that it runs has not heard of its end: it may learn that the node is lost.
bool JobFollower::is_alone(const Tracked& tracked, Clock::time_point now) const {
  const auto grace = tracked.job.rules.grace;
  if (now - tracked.exit_seen < grace) return false;
  return tracked.running_at <= tracked.exit_seen ||
         now - tracked.running_at >= grace + 2 * timing_.slowest_query;
}

// Whether the job was restarted after the start that left this exit status.
bool JobFollower::of_another_start(const Tracked& tracked, const JobExit& exit) {
  const JobReport& report = tracked.report;
  return is_active(report.state) && report.restarts >= 0 && exit.restarts >= 0 &&
         report.restarts != exit.restarts;
}

// The exit status alone is not enough. A failure may have an outside cause (a limit, a person), and
// success may be reported by a script whose node is lost. The scheduler knows.
void JobFollower::take_exit(Tracked& tracked, const JobExit& exit, Clock::time_point now,
                            std::vector<JobEnd>* ended) {
  tracked.exit = exit;
  tracked.exit_seen = now;
  if (follow_claimant(tracked, now)) return;
  if (tracked.heard && !is_active(tracked.report.state)) {
    ended->push_back(end_with_exit(tracked));
    return;
  }
  hurry(now);
  // A successful end waits only for the scheduler's answer. The query is sent at once, but no more
  // often than the interval between queries allows.
  query_next_ = std::min(query_next_, std::max(now, query_started_ + timing_.first_query));
}

// Whether the job ended because other jobs needed its nodes. With a time of grace, its program is
// told to end, and Slurm gives the job any state. The job script asks Slurm when its program has
// ended, or says that it could not. A program that had failed before has left an exit status
// without the mark, in a job that Slurm calls FAILED.
bool JobFollower::is_preempted(const Tracked& tracked) {
  const JobReport& report = tracked.report;
  if (tracked.exit && (tracked.exit->preempted || (tracked.exit->unasked && report.preempted))) {
    return true;
  }
  if (!report.preempted || is_active(report.state)) return false;
  return !tracked.exit ||
         (tracked.exit->code != 0 && report.word != "FAILED" && report.word != "COMPLETED");
}

JobEnd JobFollower::preempted_end(const Tracked& tracked) {
  JobEnd end{tracked.job.workpackage, JobEnd::Kind::retryable, -1, "PREEMPTED", {}};
  end.nodes = tracked.report.nodes;
  end.words = "job " + tracked.job.id + " was preempted" + in_brackets(tracked.report.word);
  return end;
}

JobEnd JobFollower::end_with_exit(const Tracked& tracked) const {
  if (is_preempted(tracked)) return preempted_end(tracked);
  const JobReport& report = tracked.report;
  JobEnd end{tracked.job.workpackage, JobEnd::Kind::exit, tracked.exit->code, {}, {}};
  end.nodes = report.nodes;
  if (is_active(report.state) || report.word == "FAILED") return end;
  // Its program had succeeded before the scheduler ended the job.
  if (tracked.exit->code == 0 && report.state == JobState::failed) return end;
  end.word = report.word;
  if (report.state == JobState::failed || report.state == JobState::retryable) {
    end.kind = report.state == JobState::failed ? JobEnd::Kind::failed : JobEnd::Kind::retryable;
    // A member of a pack may have ended by itself before its job was ended.
    end.words = "exit status " + std::to_string(tracked.exit->code) + "; job " + tracked.job.id +
                ": " + report.word + in_brackets(report.reason);
  }
  return end;
}

void JobFollower::start_query(Clock::time_point now) {
  std::vector<std::string> list;
  long long since = std::time(nullptr);
  for (const auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage != Stage::follow) continue;
    list.push_back(tracked.job.id);
    since = std::min(since, tracked.job.named_at);
  }
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  // `since` leaves a margin, because clocks differ between hosts.
  auto question = [this, at = now, list = std::move(list), since = since - 3600]() mutable {
    Asked asked;
    asked.at = at;
    asked.status = scheduler_.query(list, since, &asked.reports);
    asked.ids = std::move(list);
    return asked;
  };
  query_started_ = now;
  query_ = std::async(timing_.background ? std::launch::async : std::launch::deferred,
                      std::move(question));
}

void JobFollower::take_query(Clock::time_point now, std::vector<JobEnd>* ended) {
  if (timing_.background &&
      query_->wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return;
  }
  const Asked asked = query_->get();
  query_.reset();
  // A scheduler that answers slowly is queried less often.
  const auto cost = std::chrono::duration_cast<milliseconds>(now - query_started_) * 20;
  query_interval_ = std::min(timing_.slowest_query, query_interval_ + query_interval_ / 2);
  query_next_ = now + std::max(query_interval_, std::min(cost, timing_.slowest_query));
  if (!asked.status) {
    if (asked.status.message() != last_trouble_) log_.write(asked.status.message());
    last_trouble_ = asked.status.message();
    return;
  }
  last_trouble_.clear();
  const std::set<std::string> known(asked.ids.begin(), asked.ids.end());
  for (auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage == Stage::follow && known.count(tracked.job.id) != 0) {
      take_report(tracked, asked, now, ended);
    }
  }
}

void JobFollower::take_report(Tracked& tracked, const Asked& asked, Clock::time_point now,
                              std::vector<JobEnd>* ended) {
  const auto found = asked.reports.find(tracked.job.id);
  const bool ours = found != asked.reports.end() &&
                    (found->second.name.empty() || found->second.name == tracked.job.request.name);
  if (ours && found->second.state == JobState::unheard) return;
  if (ours) {
    tracked.report = found->second;
  } else if (is_active(tracked.report.state) || !tracked.heard) {
    tracked.report = JobReport();
    tracked.report.reason = found == asked.reports.end()
                                ? "the scheduler does not know job " + tracked.job.id
                                : "job " + tracked.job.id + " is another one's by now";
  }
  tracked.heard = true;
  if (ours && tracked.report.word == "RUNNING") tracked.running_at = asked.at;
  if (ours && is_active(tracked.report.state)) {
    tracked.gone_since.reset();
    if (take_active(tracked, asked, ended)) return;
    std::string words;
    if (!waits_too_long(tracked, now, &words) || follow_claimant(tracked, now)) return;
    std::vector<std::string> cancelled;
    if (Status s = scheduler_.cancel({{tracked.job.id, tracked.job.request.name}}, &cancelled);
        !s) {
      log_.write(s.message());
      return;
    }
    ended->push_back({tracked.job.workpackage, JobEnd::Kind::failed, -1, "PENDING", words});
    return;
  }
  if (tracked.exit) {
    ended->push_back(end_with_exit(tracked));
    return;
  }
  if (!ours && found != asked.reports.end() && find_other(tracked, now)) return;
  if (!tracked.gone_since) tracked.gone_since = now;
  // Its exit status may be delayed by a network file system.
  if (tracked.job.marks.any()) {
    std::optional<JobExit> exit;
    const Status looked = exit_left(tracked.job.marks, &exit);
    if (exit) {
      take_exit(tracked, *exit, now, ended);
      return;
    }
    if (!looked || now - *tracked.gone_since < tracked.job.rules.grace) {
      // The next query is due when the grace period is over.
      const auto over = *tracked.gone_since + tracked.job.rules.grace;
      if (over > now) query_next_ = std::min(query_next_, over);
      return;
    }
  }
  if (follow_claimant(tracked, now)) return;
  ended->push_back(end_without_exit(tracked));
}

// A lost answer may leave two jobs of one name. When the other one works in the folder, it is the
// one to follow, and this one is cancelled.
bool JobFollower::follow_claimant(Tracked& tracked, Clock::time_point now) {
  const std::string claim = tracked.job.marks.claim_file(tracked.job.request.name);
  std::string text;
  if (claim.empty()) return false;
  // While the folder cannot be read, nobody knows whose values are in it.
  if (Status s = read_file(claim, &text); !s) return may_pass(s.reason());
  const std::string id(strip(text));
  if (id.empty() || id == tracked.job.id) return false;
  std::vector<std::string> cancelled;
  const Status status = scheduler_.cancel({{tracked.job.id, tracked.job.request.name}}, &cancelled);
  const std::string outcome = !status ? "could not be cancelled: " + status.message()
                              : cancelled.empty()
                                  ? "is left alone: no job of this name in the queue has that id"
                                  : "is cancelled";
  log_.write(tracked.job.label + ": job " + id + " of the name " + tracked.job.request.name +
             " works in its folder, and job " + tracked.job.id + " " + outcome);
  take_other(tracked, id, now);
  return true;
}

// The id is another job's: of one that was submitted after a crash of the controller, or a site's
// wrapper of the submission named it. Ours may have another id.
bool JobFollower::find_other(Tracked& tracked, Clock::time_point now) {
  const std::string& name = tracked.job.request.name;
  std::map<std::string, std::string> ids;
  if (Status s = scheduler_.find({name}, tracked.job.named_at - 3600, &ids); !s) {
    log_.write(s.message());
    return false;
  }
  const auto found = ids.find(name);
  if (found == ids.end() || tracked.job.id_in(found->second) == tracked.job.id) return false;
  log_.write(tracked.job.label + ": job " + tracked.job.id + " has another name; found job " +
             found->second + " (" + name + ")");
  take_other(tracked, tracked.job.id_in(found->second), now);
  return true;
}

void JobFollower::take_other(Tracked& tracked, const std::string& id, Clock::time_point now) {
  // A failure to record the id is harmless: the job is found again by its name or its claim.
  if (Status s = journal_.job_submitted(tracked.job.workpackage, id); !s) log_.write(s.message());
  tracked.job.id = id;
  tracked.report = JobReport();
  tracked.heard = tracked.requeued = false;
  tracked.gone_since.reset();
  tracked.stuck_since.reset();
  hurry(now);
}

// Handles a job that waits or runs. Returns true when its program has succeeded and the scheduler
// agrees.
bool JobFollower::take_active(Tracked& tracked, const Asked& asked, std::vector<JobEnd>* ended) {
  const JobReport& report = tracked.report;
  const bool queued = report.state == JobState::queued;
  if (!queued || !tracked.exit) {
    tracked.requeued = tracked.requeued && queued;
  } else if (asked.at >= tracked.exit_seen) {
    tracked.requeued = true;
    tracked.exit.reset();
  }
  if (!tracked.exit || tracked.exit->code != 0 || asked.at < tracked.exit_seen) return false;
  if (of_another_start(tracked, *tracked.exit)) {
    tracked.exit.reset();
    return false;
  }
  // COMPLETING is also the state of a job that is being ended because its node was lost. Only its
  // final state tells the two apart.
  if (report.word == "COMPLETING") return false;
  ended->push_back(end_with_exit(tracked));
  return true;
}

bool JobFollower::waits_too_long(Tracked& tracked, Clock::time_point now,
                                 std::string* words) const {
  const JobReport& report = tracked.report;
  if (report.state != JobState::queued) return false;
  if (!report.stuck) {
    tracked.stuck_since.reset();
  } else if (!tracked.stuck_since) {
    tracked.stuck_since = now;
  } else if (now - *tracked.stuck_since >= tracked.job.rules.grace) {
    *words = "cancelled: it would wait in the queue for ever, for the reason " + report.reason;
    return true;
  }
  const milliseconds limit = tracked.job.rules.pending;
  if (limit.count() == 0 || report.submitted == 0) return false;
  const auto waited = std::chrono::seconds(std::time(nullptr) - report.submitted);
  if (waited < limit) return false;
  *words = "cancelled: it waited in the queue for longer than its pending_limit of " +
           std::to_string(limit.count() / 1000) + " s" + in_brackets(report.reason);
  return true;
}

JobEnd JobFollower::end_without_exit(const Tracked& tracked) const {
  if (is_preempted(tracked)) return preempted_end(tracked);
  const JobReport& report = tracked.report;
  JobEnd end{tracked.job.workpackage, JobEnd::Kind::lost, -1, report.word, {}};
  end.nodes = report.nodes;
  const std::string state = report.word + in_brackets(report.reason);
  switch (report.state) {
    case JobState::failed:
      end.kind = JobEnd::Kind::failed;
      end.words = "job " + tracked.job.id + " ended without an exit status: " + state;
      break;
    case JobState::retryable:
      end.kind = JobEnd::Kind::retryable;
      end.words = "job " + tracked.job.id + " ended without an exit status: " + state;
      break;
    case JobState::ok:
      if (!tracked.job.marks.any()) {
        end.kind = JobEnd::Kind::exit;
        end.exit_code = 0;
      } else {
        end.words = "the scheduler says that job " + tracked.job.id +
                    " is COMPLETED, but it left no exit status";
      }
      break;
    default:
      end.words = report.reason + ", and it left no exit status";
  }
  return end;
}

}  // namespace tally
