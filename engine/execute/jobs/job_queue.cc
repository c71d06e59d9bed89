// Brings jobs into the scheduler's queue: names them, looks for earlier submissions, submits.
#include <algorithm>
#include <ctime>

#include "engine/base/files.h"
#include "engine/execute/jobs/jobs.h"

namespace tally {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds first_retry{1000}, slowest_retry{60000};
constexpr size_t names_at_once = 64;

}  // namespace

bool JobFollower::nothing_to_submit() const {
  for (const auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage == Stage::find) return false;
  }
  return !moves();
}

// Whether the first of the queue waits for nothing but its time.
bool JobFollower::moves() const {
  if (queue_.empty()) return false;
  const Tracked& first = jobs_.at(queue_.front());
  const int most = first.job.rules.in_flight;
  const size_t flying = jobs_.size() - queue_.size();
  const bool no_room = (most > 0 && flying >= static_cast<size_t>(most)) || full_;
  return flying == 0 || !no_room;
}

bool JobFollower::may_submit(const Tracked& tracked, Clock::time_point now) const {
  const JobRules& rules = tracked.job.rules;
  const size_t flying = jobs_.size() - queue_.size();
  if (rules.in_flight > 0 && flying >= static_cast<size_t>(rules.in_flight)) return false;
  return now >= submit_next_ && (rules.per_second <= 0 || tokens_ >= 1);
}

// Looks for jobs that were submitted, by an earlier engine or by this one, without an answer that
// gave the id. One query covers all of them.
void JobFollower::find_named(Clock::time_point now, std::vector<JobEnd>* ended) {
  if (now < find_next_) return;
  std::vector<std::string> names;
  long long since = std::time(nullptr);
  for (auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage != Stage::find) continue;
    names.push_back(tracked.job.request.name);
    since = std::min(since, tracked.job.named_at);
  }
  if (names.empty()) return;
  std::map<std::string, std::string> ids;
  const Status asked = scheduler_.find(names, since - 3600, &ids);
  if (!asked) back_off_ = std::clamp(back_off_ * 2, first_retry, slowest_retry);
  find_next_ = asked ? now : now + back_off_;
  for (auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage != Stage::find) continue;
    if (!asked) {
      trouble(tracked, asked.message(), now, ended);
      continue;
    }
    const auto id = ids.find(tracked.job.request.name);
    bool has = false;
    // An engine that took it for one that has not run would run it twice.
    Status looked = id != ids.end() ? Status::ok() : has_run(tracked, &has);
    if (!looked) {
      back_off_ = std::clamp(back_off_ * 2, first_retry, slowest_retry);
      find_next_ = now + back_off_;
      trouble(tracked, looked.message(), now, ended);
    } else if (id != ids.end()) {
      log_.write(tracked.job.label + ": found job " + id->second + " (" + id->first + ")");
      // A failure to record the id is harmless: the job is found again by its name.
      const Status recorded = follow(tracked, id->second, now);
      if (!recorded) log_.write(recorded.message());
    } else if (has) {
      end_unfound(tracked, ended);
    } else if (!tracked.refused.empty()) {
      ended->push_back({workpackage, JobEnd::Kind::rejected, -1, {}, tracked.refused});
    } else {
      tracked.stage = Stage::submit;
      queue_.push_back(workpackage);
    }
  }
}

// Whether a job that the scheduler does not know has run. It has if one of its workpackages has
// left an exit status.
Status JobFollower::has_run(const Tracked& tracked, bool* has) {
  std::optional<JobExit> exit;
  Status looked = exit_left(tracked.job.marks, &exit);
  for (const Job& member : tracked.job.members) {
    if (looked && !exit) looked = exit_left(member.marks, &exit);
  }
  *has = exit.has_value();
  return looked;
}

// A workpackage's exit status is its end. A pack member without one is lost, and does not run a
// second time.
void JobFollower::end_unfound(Tracked& tracked, std::vector<JobEnd>* ended) {
  std::vector<Job> members = std::move(tracked.job.members);
  tracked.job.members.clear();
  tracked.stage = Stage::follow;
  const auto end = [&](const Job& job) {
    std::optional<JobExit> exit;
    const Status looked = exit_left(job.marks, &exit);
    if (exit) {
      ended->push_back({job.workpackage, JobEnd::Kind::exit, exit->code, {}, {}});
    } else {
      ended->push_back({job.workpackage,
                        JobEnd::Kind::lost,
                        -1,
                        {},
                        looked
                            ? "its job " + job.request.name + " has run and is not known any more"
                            : looked.message()});
    }
  };
  end(tracked.job);
  for (const Job& member : members) end(member);
}

// Names are written to disk before anything is submitted. One flush covers many names.
Status JobFollower::name_ready() {
  std::vector<std::pair<int, std::string>> names;
  for (const int workpackage : queue_) {
    Tracked& tracked = jobs_.at(workpackage);
    if (!tracked.job.named) {
      names.emplace_back(workpackage, tracked.job.journal_name());
      for (const Job& member : tracked.job.members) {
        names.emplace_back(member.workpackage, member.journal_name());
      }
    }
    if (names.size() >= names_at_once) break;
  }
  TRY(journal_.jobs_named(names));
  for (const auto& [workpackage, name] : names) {
    const auto known = jobs_.find(workpackage);
    if (known == jobs_.end()) continue;  // a member of a pack
    Tracked& tracked = known->second;
    tracked.job.named = true;
    tracked.job.named_at = std::time(nullptr);
  }
  return Status::ok();
}

Status JobFollower::submit_ready(Clock::time_point now, std::vector<JobEnd>* ended) {
  const auto start = Clock::now();
  while (!queue_.empty()) {
    Tracked& tracked = jobs_.at(queue_.front());
    const double rate = tracked.job.rules.per_second;
    tokens_ =
        std::min(burst, tokens_ + std::chrono::duration<double>(now - tokens_at_).count() * rate);
    tokens_at_ = now;
    if (!may_submit(tracked, now)) return Status::ok();
    if (!tracked.job.named) {
      TRY(name_ready());
    }
    tokens_ -= 1;
    queue_.pop_front();
    TRY(submit(tracked, now, ended));
    if (Clock::now() - start >= timing_.longest_turn) return Status::ok();
  }
  return Status::ok();
}

// From now on the folders belong to this job, and not to one submitted before.
Status JobFollower::own(const Tracked& tracked) const {
  const std::string& name = tracked.job.request.name;
  const auto write = [&](const Job& job) {
    const std::string owner = job.marks.owner_file();
    return owner.empty() ? Status::ok() : write_file(owner, name + "\n");
  };
  Status status = write(tracked.job);
  for (const Job& member : tracked.job.members) {
    if (status) status = write(member);
  }
  return status;
}

Status JobFollower::submit(Tracked& tracked, Clock::time_point now, std::vector<JobEnd>* ended) {
  Refusal refusal = Refusal::none;
  if (Status s = own(tracked); !s) {
    ended->push_back({tracked.job.workpackage, JobEnd::Kind::rejected, -1, {}, s.message()});
    return Status::ok();
  }
  std::string id;
  const Status status = scheduler_.submit(tracked.job.request, &id, &refusal);
  if (!status) {
    refused(tracked, refusal, status.message(), now, ended);
    return Status::ok();
  }
  back_off_ = milliseconds(0);
  full_ = false;
  log_.write(tracked.job.label + ": job " + id + " (" + tracked.job.request.name + ")" +
             (tracked.job.members.empty()
                  ? std::string()
                  : " with " + std::to_string(tracked.job.members.size()) + " others"));
  return follow(tracked, id, now);
}

Status JobFollower::follow(Tracked& tracked, const std::string& id, Clock::time_point now) {
  std::vector<Job> members = std::move(tracked.job.members);
  tracked.job.members.clear();
  tracked.trouble_since.reset();
  tracked.refused.clear();
  tracked.job.id = tracked.job.id_in(id);
  tracked.stage = Stage::follow;
  hurry(now);
  if (members.empty()) return journal_.job_submitted(tracked.job.workpackage, tracked.job.id);
  return journal_.transaction([&] {
    TRY(journal_.job_submitted(tracked.job.workpackage, tracked.job.id));
    for (Job& member : members) {
      member.id = member.id_in(id);
      member.named = true;
      member.named_at = tracked.job.named_at;
      TRY(journal_.job_submitted(member.workpackage, member.id));
      Tracked other;
      other.stage = Stage::follow;
      const int workpackage = member.workpackage;
      other.job = std::move(member);
      jobs_[workpackage] = std::move(other);
    }
    return Status::ok();
  });
}

// An end before the job is followed also ends all members of the job.
void JobFollower::end_members(const Tracked& tracked, std::vector<JobEnd>* ended, size_t from) {
  for (size_t i = from; i < ended->size(); ++i) {
    if ((*ended)[i].workpackage != tracked.job.workpackage) continue;
    for (const Job& member : tracked.job.members) {
      JobEnd end = (*ended)[i];
      end.workpackage = member.workpackage;
      ended->push_back(end);
    }
    return;
  }
}

void JobFollower::refused(Tracked& tracked, Refusal refusal, const std::string& words,
                          Clock::time_point now, std::vector<JobEnd>* ended) {
  const int workpackage = tracked.job.workpackage;
  if (refusal == Refusal::rejected) {
    ended->push_back({workpackage, JobEnd::Kind::rejected, -1, {}, words});
    return;
  }
  if (refusal == Refusal::failed) {
    tracked.stage = Stage::find;
    tracked.refused = words;
    return;
  }
  back_off_ = std::clamp(back_off_ * 2, first_retry, slowest_retry);
  submit_next_ = find_next_ = now + back_off_;
  if (refusal == Refusal::full) {
    full_ = true;
    queue_.push_front(workpackage);
    // If other jobs of this run are queued, there will be room when they end. Otherwise the limit
    // leaves no room at all.
    if (jobs_.size() > queue_.size()) tracked.trouble_since.reset();
  } else {
    // The answer may have been lost although the job was accepted. The job is looked for before it
    // is submitted again.
    tracked.stage = Stage::find;
  }
  trouble(tracked, words, now, ended);
  if (!ended->empty() && ended->back().workpackage == workpackage && refusal == Refusal::full) {
    queue_.pop_front();
  }
}

// The scheduler is unreachable or accepts nothing now. This is reported once and tolerated for a
// while.
void JobFollower::trouble(Tracked& tracked, const std::string& words, Clock::time_point now,
                          std::vector<JobEnd>* ended) {
  if (words != last_trouble_) log_.write(tracked.job.label + ": " + words + "; trying again");
  last_trouble_ = words;
  if (!tracked.trouble_since) tracked.trouble_since = now;
  if (now - *tracked.trouble_since < tracked.job.rules.patience) return;
  if (tracked.stage == Stage::find) {
    ended->push_back(
        {tracked.job.workpackage,
         JobEnd::Kind::lost,
         -1,
         {},
         "whether job " + tracked.job.request.name + " was submitted cannot be told: " + words});
  } else {
    ended->push_back({tracked.job.workpackage, JobEnd::Kind::rejected, -1, {}, words});
  }
}

}  // namespace tally
