#include "engine/execute/jobs.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>

#include "engine/execute/run_directory.h"

namespace tally {
namespace {

using std::chrono::milliseconds;

// Listing the folder first makes a network file system look again.
void look_again(const std::string& path) {
  if (DIR* folder = opendir(path.substr(0, path.rfind('/')).c_str())) {
    while (readdir(folder) != nullptr) {
    }
    closedir(folder);
  }
}

bool is_there(const std::string& path) {
  return !path.empty() && access(path.c_str(), F_OK) == 0;
}

constexpr milliseconds slowest_retry{60000};

// Reasons for waiting that no amount of waiting changes.
bool hopeless(const std::string& reason) {
  static const std::set<std::string> known{
      "PartitionNodeLimit",       "PartitionTimeLimit", "PartitionConfig", "BadConstraints",
      "DependencyNeverSatisfied", "InvalidAccount",     "InvalidQOS"};
  return known.count(reason) != 0;
}

std::string in_brackets(const std::string& text) {
  return text.empty() ? text : " (" + text + ")";
}

}  // namespace

bool read_exit_status(const std::string& path, int* status) {
  std::string text;
  if (!is_there(path) || !read_file(path, &text)) return false;
  char* end = nullptr;
  const long number = strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\n') return false;
  *status = static_cast<int>(number);
  return true;
}

std::optional<int> exit_left(const JobMarks& marks) {
  if (!marks.any()) return std::nullopt;
  int status = 0;
  if (!marks.status_file.empty()) {
    look_again(marks.status_file);
    if (read_exit_status(marks.status_file, &status)) return status;
    return std::nullopt;
  }
  look_again(marks.done_file.empty() ? marks.error_file : marks.done_file);
  if (is_there(marks.error_file)) return 1;
  if (is_there(marks.done_file)) return 0;
  return std::nullopt;
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
  const int package = job.package;
  Tracked tracked;
  tracked.stage = !job.id.empty() ? Stage::follow : job.named ? Stage::find : Stage::submit;
  tracked.job = std::move(job);
  timing_.slowest_query = std::min(timing_.slowest_query, tracked.job.rules.slowest_query);
  if (tracked.stage == Stage::submit) queue_.push_back(package);
  if (tracked.stage == Stage::follow) {
    // It may have ended meanwhile: looked at without delay.
    look_next_ = query_next_ = Clock::time_point();
  }
  jobs_[package] = std::move(tracked);
}

Status JobFollower::turn(std::vector<JobEnd>* ended, Clock::time_point now) {
  const size_t before = ended->size();
  find_named(now, ended);
  forget(ended, before);
  const size_t found = ended->size();
  if (Status s = submit_ready(now, ended); !s) return s;
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
    const auto tracked = jobs_.find((*ended)[i].package);
    if (tracked == jobs_.end()) continue;
    end_riders(tracked->second, ended, i);
    const JobEnd& end = (*ended)[i];
    // A good end speaks for itself, and a lost job may yet be found.
    const bool good = end.kind == JobEnd::Kind::exit && end.exit_code == 0;
    if (!good && end.kind != JobEnd::Kind::lost) disown(tracked->second.job);
    jobs_.erase(tracked);
  }
}

void JobFollower::disown(const Job& job) {
  const std::string owner = job.marks.owner_file();
  if (!is_there(owner)) return;
  if (Status s = write_file(owner, "ended\n"); !s) log_.write(s.message());
}

size_t JobFollower::followed() const {
  return static_cast<size_t>(std::count_if(jobs_.begin(), jobs_.end(), [](const auto& entry) {
    return entry.second.stage == Stage::follow;
  }));
}

JobFollower::Clock::time_point JobFollower::next() const {
  auto next = Clock::time_point::max();
  bool any_followed = false;
  for (const auto& [package, tracked] : jobs_) {
    any_followed = any_followed || tracked.stage == Stage::follow;
    if (tracked.stage == Stage::find) next = std::min(next, find_next_);
  }
  if (any_followed) next = std::min(next, look_next_);
  if (any_followed) {
    // The answer comes with a signal (the command's end), or a moment after it.
    next = std::min(next, query_ ? Clock::now() + milliseconds(20) : query_next_);
  }
  if (!settled()) {
    next =
        std::min(next, std::max(submit_next_, Clock::now() + milliseconds(tokens_ < 1 ? 20 : 0)));
  }
  return next;
}

std::vector<std::string> JobFollower::ids() const {
  std::vector<std::string> list;
  for (const auto& [package, tracked] : jobs_) {
    if (tracked.stage == Stage::follow) list.push_back(tracked.job.id);
  }
  // Steps of one allocation have one id.
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::vector<int> JobFollower::unsubmitted() const {
  std::vector<int> packages;
  for (const int package : queue_) {
    packages.push_back(package);
    for (const Job& rider : jobs_.at(package).job.riders) packages.push_back(rider.package);
  }
  return packages;
}

Status JobFollower::cancel_all(std::vector<int>* packages) {
  const std::vector<std::string> all = ids();
  Status status = all.empty() ? Status::ok() : scheduler_.cancel(all);
  if (!status) return status;
  for (const auto& [package, tracked] : jobs_) {
    if (tracked.stage == Stage::find) continue;
    packages->push_back(package);
    for (const Job& rider : tracked.job.riders) packages->push_back(rider.package);
  }
  for (const int package : *packages) {
    if (const auto tracked = jobs_.find(package); tracked != jobs_.end()) {
      disown(tracked->second.job);
      jobs_.erase(tracked);
    }
  }
  queue_.clear();
  return status;
}

// --- following

void JobFollower::look(Clock::time_point now, std::vector<JobEnd>* ended) {
  for (auto& [package, tracked] : jobs_) {
    if (tracked.stage != Stage::follow) continue;
    const auto exit = exit_left(tracked.job.marks);
    if (!exit || (tracked.requeued && *exit != 0)) {
      tracked.exit.reset();
    } else if (!tracked.exit || *exit == 0) {
      take_exit(tracked, *exit, now, ended);
    } else if (now - tracked.exit_seen >= tracked.job.rules.grace) {
      // The scheduler says nothing about it: the exit status alone.
      ended->push_back(end_of_failure(tracked));
    }
  }
}

// A job's good end is its own word. A failure may come from outside (a limit, a person, a lost
// node): the scheduler says so when the job is over.
void JobFollower::take_exit(Tracked& tracked, int exit, Clock::time_point now,
                            std::vector<JobEnd>* ended) {
  if (exit == 0) {
    ended->push_back({tracked.job.package, JobEnd::Kind::exit, 0, {}, {}});
    return;
  }
  tracked.exit = exit;
  tracked.exit_seen = now;
  if (tracked.heard && !is_active(tracked.report.state)) {
    ended->push_back(end_of_failure(tracked));
    return;
  }
  hurry(now);
}

JobEnd JobFollower::end_of_failure(const Tracked& tracked) const {
  const JobReport& report = tracked.report;
  JobEnd end{tracked.job.package, JobEnd::Kind::exit, *tracked.exit, {}, {}};
  if (is_active(report.state) || report.word == "FAILED") return end;
  end.word = report.word;
  if (report.state == JobState::failed || report.state == JobState::retryable) {
    end.kind = report.state == JobState::failed ? JobEnd::Kind::failed : JobEnd::Kind::retryable;
    end.words = "job " + tracked.job.id + " was ended with exit status " +
                std::to_string(*tracked.exit) + ": " + report.word + in_brackets(report.reason);
  }
  return end;
}

void JobFollower::start_query(Clock::time_point now) {
  std::vector<std::string> list;
  long long since = std::time(nullptr);
  for (const auto& [package, tracked] : jobs_) {
    if (tracked.stage != Stage::follow) continue;
    list.push_back(tracked.job.id);
    since = std::min(since, tracked.job.named_at);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  // Clocks differ between hosts.
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
  // A scheduler that is slow to answer is asked less often.
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
  for (auto& [package, tracked] : jobs_) {
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
  if (ours && is_active(tracked.report.state)) {
    tracked.gone_since.reset();
    const bool queued = tracked.report.state == JobState::queued;
    if (!queued || !tracked.exit) {
      tracked.requeued = tracked.requeued && queued;
    } else if (asked.at >= tracked.exit_seen) {
      tracked.requeued = true;
      tracked.exit.reset();
    }
    std::string words;
    if (!waits_too_long(tracked, now, &words)) return;
    if (Status s = scheduler_.cancel({tracked.job.id}); !s) {
      log_.write(s.message());
      return;
    }
    ended->push_back({tracked.job.package, JobEnd::Kind::failed, -1, "PENDING", words});
    return;
  }
  if (tracked.exit) {
    ended->push_back(end_of_failure(tracked));
    return;
  }
  if (!tracked.gone_since) tracked.gone_since = now;
  // Its exit status may be on its way through a network file system.
  if (tracked.job.marks.any()) {
    if (const auto exit = exit_left(tracked.job.marks)) {
      take_exit(tracked, *exit, now, ended);
      return;
    }
    if (now - *tracked.gone_since < tracked.job.rules.grace) {
      // Looked at again when the time is over.
      query_next_ = std::min(query_next_, *tracked.gone_since + tracked.job.rules.grace);
      return;
    }
  }
  ended->push_back(end_without_exit(tracked));
}

bool JobFollower::waits_too_long(Tracked& tracked, Clock::time_point now,
                                 std::string* words) const {
  const JobReport& report = tracked.report;
  if (report.state != JobState::queued) return false;
  if (!hopeless(report.reason)) {
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
  const JobReport& report = tracked.report;
  JobEnd end{tracked.job.package, JobEnd::Kind::lost, -1, report.word, {}};
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

std::vector<JobView> JobFollower::views() const {
  std::vector<JobView> views;
  for (const auto& [package, tracked] : jobs_) {
    JobView view;
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
