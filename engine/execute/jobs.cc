#include "engine/execute/jobs.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "engine/execute/run_directory.h"

namespace tally {

bool read_exit_status(const std::string& path, int* status) {
  // Listing the folder first makes a network file system look again.
  if (DIR* folder = opendir(path.substr(0, path.rfind('/')).c_str())) {
    while (readdir(folder) != nullptr) {
    }
    closedir(folder);
  }
  std::string text;
  if (access(path.c_str(), F_OK) != 0 || !read_file(path, &text)) return false;
  char* end = nullptr;
  const long number = strtol(text.c_str(), &end, 10);
  if (end == text.c_str() || *end != '\n') return false;
  *status = static_cast<int>(number);
  return true;
}

void JobFollower::follow(int package, const std::string& id, const std::string& status_file) {
  Job job;
  job.id = id;
  job.status_file = status_file;
  jobs_[package] = job;
  interval_ = timing_.first_poll;
  next_ = std::min(next_, Clock::now() + interval_);
}

Status JobFollower::submit(int package, const JobRequest& request, const std::string& status_file,
                           std::string* rejected) {
  rejected->clear();
  unlink(status_file.c_str());
  if (Status s = journal_.job_named(package, request.name); !s) return s;
  Status status;
  std::string id;
  for (int attempt = 0; attempt < 4; ++attempt) {
    bool transient = false;
    status = scheduler_.submit(request, &id, &transient);
    if (status || !transient) break;
    log_.write("workpackage " + std::to_string(package) + ": " + status.message() +
               "; trying again");
    std::this_thread::sleep_for(std::chrono::seconds(1 << attempt));
    // The answer may have been lost, not the job.
    if (scheduler_.find(request.name, &id) && !id.empty()) {
      status = Status::ok();
      break;
    }
  }
  if (!status) {
    *rejected = status.message();
    return Status::ok();
  }
  log_.write("workpackage " + std::to_string(package) + ": job " + id + " (" + request.name + ")");
  follow(package, id, status_file);
  return journal_.job_submitted(package, id);
}

Status JobFollower::adopt(int package, const std::string& name, const std::string& id,
                          const std::string& status_file, bool* found) {
  *found = true;
  if (!id.empty()) {
    follow(package, id, status_file);
    return Status::ok();
  }
  int status = 0;
  std::string known;
  if (read_exit_status(status_file, &status)) {
    known = "ended";
  } else if (Status s = scheduler_.find(name, &known); !s) {
    return Status::error("whether job " + name +
                         " was submitted before the engine was killed cannot "
                         "be told: " +
                         s.message() + "; continue the run when the scheduler answers");
  }
  *found = !known.empty();
  if (!*found) return Status::ok();
  follow(package, known, status_file);
  return journal_.job_submitted(package, known);
}

std::vector<std::string> JobFollower::ids() const {
  std::vector<std::string> list;
  for (const auto& [package, job] : jobs_) list.push_back(job.id);
  return list;
}

std::vector<JobEnd> JobFollower::poll(Clock::time_point now) {
  std::vector<JobEnd> ended;
  if (jobs_.empty() || now < next_) return ended;
  // The job's own word is the first witness; it needs no scheduler.
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    int status = 0;
    if (read_exit_status(job->second.status_file, &status)) {
      ended.push_back({job->first, true, status, {}});
      job = jobs_.erase(job);
    } else {
      ++job;
    }
  }
  std::map<std::string, JobReport> reports;
  const Status asked = jobs_.empty() ? Status::ok() : scheduler_.query(ids(), &reports);
  if (!asked) log_.write(asked.message());
  for (auto job = jobs_.begin(); asked && job != jobs_.end();) {
    Job& j = job->second;
    const auto report = reports.find(j.id);
    const bool active = report != reports.end() && (report->second.state == JobState::queued ||
                                                    report->second.state == JobState::running);
    if (report != reports.end() && !report->second.reason.empty()) j.reason = report->second.reason;
    if (active) {
      j.gone = false;
    } else if (!j.gone) {
      j.gone = true;
      j.gone_since = now;
    } else if (now - j.gone_since >= timing_.grace) {
      // The scheduler may know how it ended (a time limit, a cancelled job, a lost node): a failure
      // in its words. Without any word its fate is unknown.
      const bool known = report != reports.end() && report->second.state == JobState::ended &&
                         report->second.reason.rfind("COMPLETED", 0) != 0;
      ended.push_back({job->first, known, -1, j.reason});
      job = jobs_.erase(job);
      continue;
    }
    ++job;
  }
  if (!ended.empty()) {
    interval_ = timing_.first_poll;
  } else {
    interval_ = std::min(timing_.slowest_poll, interval_ + interval_ / 2);
  }
  next_ = now + interval_;
  return ended;
}

}  // namespace tally
