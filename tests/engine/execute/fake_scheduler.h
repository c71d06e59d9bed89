// A scheduler that starts nothing: what it answers is set by the test.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/execute/jobs/scheduler.h"

namespace tally::testing {

class FakeScheduler final : public Scheduler {
 public:
  Status submit(const JobRequest& request, std::string* id, Refusal* refusal) override {
    requests.push_back(request);
    *refusal = refuse_with;
    if (refuse_with != Refusal::none) return Status::error(words);
    *id = std::to_string(100 + requests.size());
    if (on_submit) on_submit(request, *id);
    return Status::ok();
  }
  Status find(const std::vector<std::string>& names, long long,
              std::map<std::string, std::string>* ids) override {
    asked_for = names;
    for (const std::string& name : names) {
      if (found.count(name) != 0) (*ids)[name] = found[name];
    }
    return outage ? Status::error("squeue: Unable to contact slurm controller") : Status::ok();
  }
  Status query(const std::vector<std::string>& ids, long long,
               std::map<std::string, JobReport>* reports) override {
    ++queries;
    for (const std::string& id : ids) {
      if (known.count(id) != 0) (*reports)[id] = known[id];
    }
    return outage ? Status::error("squeue: no answer within 60 s") : Status::ok();
  }
  Status cancel(const std::vector<NamedJob>& jobs, std::vector<std::string>* ids) override {
    ids->clear();
    for (const NamedJob& job : jobs) {
      for (size_t i = 0; job.id.empty() && i < requests.size(); ++i) {
        if (requests[i].name == job.name) ids->push_back(std::to_string(101 + i));
      }
      if (job.id.empty()) continue;
      const auto report = known.find(job.id);
      const bool named = report != known.end() && !report->second.name.empty();
      if (!named || report->second.name == job.name) ids->push_back(job.id);
    }
    if (!ids->empty()) cancelled.push_back(*ids);
    return Status::ok();
  }

  std::vector<JobRequest> requests;
  std::map<std::string, JobReport> known;    // by id
  std::map<std::string, std::string> found;  // id by name
  std::vector<std::string> asked_for;
  std::vector<std::vector<std::string>> cancelled;
  std::function<void(const JobRequest&, const std::string&)> on_submit;
  Refusal refuse_with = Refusal::none;
  std::string words;
  int queries = 0;
  bool outage = false;
};

}  // namespace tally::testing
