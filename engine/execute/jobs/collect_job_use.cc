#include "engine/execute/jobs/collect_job_use.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <thread>
#include <vector>

namespace tally {
namespace {

// The jobs of which no complete record is known. One job may be that of several workpackages.
struct Open {
  std::multimap<std::string, int> workpackages;  // by the job's id
  std::map<int, bool> shared;                    // whether the workpackage is a part of its job
  long long since = 0;                           // seconds since 1970
};

Status find_open(const Journal& journal, Open* open) {
  std::vector<Journal::Stored> all;
  if (Status s = journal.with_jobs(&all); !s) return s;
  std::map<int, JobUse> known;
  if (Status s = journal.job_uses(&known); !s) return s;
  open->since = std::time(nullptr);
  for (const Journal::Stored& stored : all) {
    const int id = stored.workpackage.id;
    const State state = stored.workpackage.outcome.state;
    const auto use = known.find(id);
    if (!has_ended(state) || stored.job_id.empty() || (use != known.end() && use->second.seconds))
      continue;
    open->workpackages.emplace(stored.job_id, id);
    open->shared[id] = stored.job_name.find('@') != std::string::npos;
    if (stored.started > 0)
      open->since = std::min(open->since, static_cast<long long>(stored.started));
  }
  return Status::ok();
}

std::vector<std::string> ids_of(const Open& open) {
  std::vector<std::string> ids;
  for (const auto& [id, workpackage] : open.workpackages) {
    if (ids.empty() || ids.back() != id) ids.push_back(id);
  }
  return ids;
}

// Numbers of a job are those of all its workpackages.
JobUse part_of(const JobUse& use, const std::string& id) {
  JobUse part;
  part.nodes = use.nodes;
  part.why = "it shares job " + id + " with other workpackages";
  return part;
}

Status keep(const std::map<std::string, JobUse>& uses, bool last, Journal& journal, Open* open) {
  for (auto entry = open->workpackages.begin(); entry != open->workpackages.end();) {
    const auto& [id, workpackage] = *entry;
    const auto found = uses.find(id);
    const bool complete = found != uses.end() && found->second.why.empty();
    if (!complete && !last) {
      ++entry;
      continue;
    }
    JobUse use;
    use.why = "Slurm has no record of job " + id;
    if (found != uses.end())
      use = open->shared.at(workpackage) ? part_of(found->second, id) : found->second;
    if (Status s = journal.set_job_use(workpackage, use); !s) return s;
    entry = open->workpackages.erase(entry);
  }
  return Status::ok();
}

}  // namespace

Status collect_job_use(Journal& journal, Scheduler& scheduler, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + patience;
  constexpr int kMargin = 3600;  // clocks differ between hosts
  Open open;
  if (Status s = find_open(journal, &open); !s) return s;
  while (!open.workpackages.empty()) {
    std::map<std::string, JobUse> uses;
    const std::vector<std::string> ids = ids_of(open);
    const Status asked = scheduler.usage(ids, open.since - kMargin, &uses);
    if (!asked) {
      uses.clear();
      for (const std::string& id : ids) uses[id].why = asked.message();
    }
    const bool last = !asked || Clock::now() >= until;
    if (Status s = journal.begin(); !s) return s;
    if (Status s = keep(uses, last, journal, &open); !s) return s;
    if (Status s = journal.commit(); !s) return s;
    if (!last && !open.workpackages.empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  return Status::ok();
}

}  // namespace tally
