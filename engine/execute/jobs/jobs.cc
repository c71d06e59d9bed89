#include "engine/execute/jobs/jobs.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {
namespace {

using std::chrono::milliseconds;

// Listing the folder first makes a network file system refresh its cache.
void look_again(const std::string& path) {
  [[maybe_unused]] const Status listed =
      each_entry(path.substr(0, path.rfind('/')), [](const dirent&) {});
}

// Reads a job script's status file: the exit status and a newline. The script moves it into place.
// Further lines may follow: "restart N" if the job was restarted, "preempted", "unasked".
Status read_exit_status(const std::string& path, std::optional<JobExit>* left) {
  std::string text;
  if (Status s = read_file(path, &text); !s) return means_not_there(s.reason()) ? Status::ok() : s;
  char* end = nullptr;
  JobExit exit;
  exit.code = static_cast<int>(strtol(text.c_str(), &end, 10));
  if (end == text.c_str() || *end != '\n') return Status::ok();
  exit.restarts = 0;
  constexpr std::string_view restart = "restart ";
  for (const std::string& line : split_strip(end, "\n")) {
    if (starts_with(line, restart)) exit.restarts = std::atoi(line.c_str() + restart.size());
    if (line == "preempted") exit.preempted = true;
    if (line == "unasked") exit.unasked = true;
  }
  *left = exit;
  return Status::ok();
}

}  // namespace

Status exit_left(const JobMarks& marks, std::optional<JobExit>* exit) {
  exit->reset();
  if (!marks.any()) return Status::ok();
  if (!marks.status_file.empty()) {
    look_again(marks.status_file);
    return read_exit_status(marks.status_file, exit);
  }
  look_again(marks.done_file.empty() ? marks.error_file : marks.done_file);
  bool error = false;
  bool done = false;
  if (!marks.error_file.empty()) {
    TRY(path_exists(marks.error_file, &error));
  }
  if (!marks.done_file.empty()) {
    TRY(path_exists(marks.done_file, &done));
  }
  if (error || done) *exit = JobExit{error ? 1 : 0};
  return Status::ok();
}

JobFollower::~JobFollower() {
  if (query_) scheduler_.abandon_query();
}

void JobFollower::hurry(Clock::time_point now) {
  look_interval_ = timing_.first_look;
  query_interval_ = timing_.first_query;
  look_next_ = std::min(look_next_, now + look_interval_);
  query_next_ = std::min(query_next_, now + query_interval_);
}

void JobFollower::add(Job job) {
  const int workpackage = job.workpackage;
  Tracked tracked;
  tracked.stage = !job.id.empty() ? Stage::follow : job.named ? Stage::find : Stage::submit;
  tracked.job = std::move(job);
  timing_.slowest_query = std::min(timing_.slowest_query, tracked.job.rules.slowest_query);
  if (tracked.stage == Stage::submit) queue_.push_back(workpackage);
  if (tracked.stage == Stage::follow) {
    // The job may have ended meanwhile, so it is checked without delay.
    look_next_ = query_next_ = Clock::time_point();
  }
  jobs_[workpackage] = std::move(tracked);
}

Status JobFollower::turn(std::vector<JobEnd>* ended, Clock::time_point now) {
  const size_t before = ended->size();
  find_named(now, ended);
  forget(ended, before);
  const size_t found = ended->size();
  TRY(submit_ready(now, ended));
  forget(ended, found);
  if (followed() > 0 && now >= look_next_) {
    const size_t looked = ended->size();
    look(now, ended);
    forget(ended, looked);
    if (ended->size() == looked) {
      look_interval_ = std::min(timing_.slowest_look, look_interval_ + look_interval_ / 2);
    }
    look_next_ = now + look_interval_;
  }
  const size_t asked = ended->size();
  if (query_) take_query(now, ended);
  if (!query_ && followed() > 0 && now >= query_next_) {
    start_query(now);
    take_query(now, ended);
  }
  forget(ended, asked);
  if (ended->size() > before) hurry(now);
  return Status::ok();
}

void JobFollower::forget(std::vector<JobEnd>* ended, size_t from) {
  const size_t all = ended->size();
  for (size_t i = from; i < all; ++i) {
    const auto tracked = jobs_.find((*ended)[i].workpackage);
    if (tracked == jobs_.end()) continue;
    end_members(tracked->second, ended, i);
    // A lost job may still be found later.
    if ((*ended)[i].kind != JobEnd::Kind::lost) disown(tracked->second.job);
    jobs_.erase(tracked);
  }
}

void JobFollower::disown(const Job& job) {
  const std::string owner = job.marks.owner_file();
  if (owner.empty() || !may_be_there(owner)) return;
  if (Status s = write_file(owner, "ended\n"); !s) log_.write(s.message());
}

size_t JobFollower::followed() const {
  return static_cast<size_t>(std::ranges::count_if(
      jobs_, [](const auto& entry) { return entry.second.stage == Stage::follow; }));
}

JobFollower::Clock::time_point JobFollower::next() const {
  auto next = Clock::time_point::max();
  bool any_followed = false;
  for (const auto& [workpackage, tracked] : jobs_) {
    any_followed = any_followed || tracked.stage == Stage::follow;
    if (tracked.stage == Stage::find) next = std::min(next, find_next_);
  }
  if (any_followed) next = std::min(next, look_next_);
  if (any_followed) {
    next = std::min(next, query_ ? answer_next() : query_next_);
  }
  // A job that is looked for has its own time.
  if (moves()) {
    const double rate = jobs_.at(queue_.front()).job.rules.per_second;
    const double missing = rate > 0 ? std::max(0.0, (1 - tokens_) / rate) : 0;
    const auto allowed = tokens_at_ + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(std::min(missing, 3600.0)));
    next = std::min(next, std::max(submit_next_, missing > 0 ? allowed : Clock::now()));
  }
  return next;
}

// The end of the query's command is signalled, and the answer may come a moment after. Nobody turns
// for one that takes long.
JobFollower::Clock::time_point JobFollower::answer_next() const {
  const auto now = Clock::now();
  const auto asked = std::chrono::duration_cast<milliseconds>(now - query_started_);
  return now + std::clamp(asked / 4, milliseconds(20), milliseconds(1000));
}

std::vector<std::string> JobFollower::ids() const {
  std::vector<std::string> list;
  for (const auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage == Stage::follow) list.push_back(tracked.job.id);
  }
  // Steps of one allocation share one id.
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::vector<int> JobFollower::unsubmitted() const {
  std::vector<int> workpackages;
  for (const int workpackage : queue_) {
    workpackages.push_back(workpackage);
    for (const Job& member : jobs_.at(workpackage).job.members)
      workpackages.push_back(member.workpackage);
  }
  return workpackages;
}

Status JobFollower::cancel_all(std::vector<int>* workpackages) {
  std::vector<NamedJob> all;
  for (const auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage == Stage::follow) all.push_back({"", tracked.job.request.name});
  }
  std::vector<std::string> cancelled;
  Status status = all.empty() ? Status::ok() : scheduler_.cancel(all, &cancelled);
  if (!status) return status;
  for (const auto& [workpackage, tracked] : jobs_) {
    if (tracked.stage == Stage::find) continue;
    workpackages->push_back(workpackage);
    for (const Job& member : tracked.job.members) workpackages->push_back(member.workpackage);
  }
  for (const int workpackage : *workpackages) {
    if (const auto tracked = jobs_.find(workpackage); tracked != jobs_.end()) {
      disown(tracked->second.job);
      jobs_.erase(tracked);
    }
  }
  queue_.clear();
  return status;
}

std::vector<JobView> JobFollower::views() const {
  std::vector<JobView> views;
  for (const auto& [workpackage, tracked] : jobs_) {
    JobView view;
    view.workpackage = workpackage;
    view.label = tracked.job.label;
    view.id = tracked.job.id;
    view.running = tracked.report.state == JobState::running;
    view.state = tracked.report.word;
    view.reason = tracked.report.reason;
    view.since = view.running ? tracked.report.started : tracked.report.submitted;
    if (tracked.stage != Stage::follow) {
      view.state = tracked.stage == Stage::find ? "looked for" : "to submit";
      view.reason = tracked.trouble_since ? last_trouble_ : full_ ? "limit on queued jobs" : "";
    } else if (!tracked.heard) {
      view.state = "submitted";
    } else if (tracked.gone_since && view.state.empty()) {
      view.state = "gone";
    }
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace tally
