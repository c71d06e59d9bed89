#include "engine/execute/jobs/job_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <thread>
#include <vector>

#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/execute/status_line.h"

namespace tally {
namespace {

using Row = std::array<std::string, 6>;

Row row_of(const JobView& view, long long now) {
  const std::string time =
      view.since > 0 ? format_duration(static_cast<double>(std::max(0LL, now - view.since))) : "";
  constexpr size_t most = 48;
  // Names and the scheduler's words may hold characters that command a terminal.
  std::string parameters = without_controls(view.parameters);
  if (parameters.size() > most) parameters = parameters.substr(0, most - 3) + "...";
  return {view.id.empty() ? "-" : without_controls(view.id),
          without_controls(view.label),
          parameters,
          without_controls(view.state),
          time,
          without_controls(view.reason)};
}

// The parameter column is left out when no workpackage has any parameters.
std::string line_of(const Row& row, const std::array<size_t, 6>& widths, bool parameters,
                    size_t columns) {
  std::string line = fmt::format("  {:<{}}  {:<{}}", row[0], widths[0], row[1], widths[1]);
  if (parameters) line += fmt::format("  {:<{}}", row[2], widths[2]);
  line += fmt::format("  {:<{}}  {:>{}}  {}", row[3], widths[3], row[4], widths[4], row[5]);
  line.erase(line.find_last_not_of(' ') + 1);
  if (columns > 0 && line.size() > columns) line.resize(columns);
  return line;
}

}  // namespace

std::vector<std::string> job_lines(const std::vector<JobView>& views, size_t most, size_t columns,
                                   long long now) {
  if (views.empty()) return {};
  std::vector<const JobView*> order;
  for (const JobView& view : views) order.push_back(&view);
  std::ranges::stable_sort(order, [](const JobView* a, const JobView* b) {
    return a->running != b->running ? a->running : a->id.empty() < b->id.empty();
  });
  const size_t shown = order.size() > most && most > 0 ? most - 1 : order.size();
  std::vector<Row> rows{{"job", "workpackage", "parameters", "state", "time", "why"}};
  bool parameters = false;
  for (size_t i = 0; i < shown; ++i) {
    rows.push_back(row_of(*order[i], now));
    parameters = parameters || !order[i]->parameters.empty();
  }
  std::array<size_t, 6> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const Row& row : rows) lines.push_back(line_of(row, widths, parameters, columns));
  if (shown < order.size()) {
    std::map<std::string, int> rest;
    for (size_t i = shown; i < order.size(); ++i) ++rest[order[i]->state];
    std::string text = fmt::format("  and {} more:", order.size() - shown);
    for (const auto& [state, count] : rest) text += fmt::format(" {} {}", count, state);
    if (columns > 0 && text.size() > columns) text.resize(columns);
    lines.push_back(text);
  }
  return lines;
}

std::string JobCounts::text() const {
  std::string text = fmt::format("{} queued, {} running, {} ended", queued, running, ended);
  if (to_submit > 0) text += fmt::format(", {} to submit", to_submit);
  return text;
}

Status jobs_of_run(const Journal& journal, Scheduler& scheduler, std::vector<JobView>* views,
                   JobCounts* counts) {
  std::vector<std::string> ids, names;
  long long since = std::time(nullptr);
  std::vector<Journal::Stored> workpackages;
  TRY(journal.with_jobs(&workpackages));
  for (const Journal::Stored& stored : workpackages) {
    if (stored.workpackage.outcome.state != State::running &&
        stored.workpackage.outcome.state != State::pending) {
      ++counts->ended;
      continue;
    }
    JobView view;
    view.workpackage = stored.workpackage.id;
    view.label = stored.directory;
    for (size_t i = 0; i < stored.parameters.size(); ++i) {
      if (stored.index[i] == Binding::no_index) continue;
      view.parameters += (view.parameters.empty() ? "" : " ") + stored.parameters[i].first + "=" +
                         one_line(stored.parameters[i].second);
    }
    view.id = stored.job_id;
    view.state = stored.job_id.empty() ? "to submit" : "submitted";
    if (stored.started > 0) since = std::min(since, static_cast<long long>(stored.started));
    if (!view.id.empty()) ids.push_back(view.id);
    names.push_back(job_of_name(stored.job_name));
    views->push_back(std::move(view));
  }
  std::map<std::string, JobReport> reports;
  Status asked = ids.empty() ? Status::ok() : scheduler.query(ids, since - 3600, &reports);
  for (size_t i = 0; i < views->size(); ++i) {
    JobView& view = (*views)[i];
    const auto report = reports.find(view.id);
    const bool ours =
        report != reports.end() && (report->second.name.empty() || report->second.name == names[i]);
    if (ours && report->second.state != JobState::unheard) {
      view.running = report->second.state == JobState::running;
      view.state = report->second.word;
      view.reason = report->second.reason;
      view.since = view.running ? report->second.started : report->second.submitted;
    } else if (asked && !view.id.empty()) {
      view.state = "gone";
    }
    if (view.id.empty()) {
      ++counts->to_submit;
    } else if (view.running) {
      ++counts->running;
    } else if (ours && report->second.state != JobState::queued) {
      ++counts->ended;
    } else {
      ++counts->queued;
    }
  }
  return asked;
}

namespace {

// The jobs of which no complete record is known. One job may be that of several workpackages.
struct Open {
  std::multimap<std::string, int> workpackages;  // by the job's id
  std::map<std::string, std::string> names;      // of the jobs, by id
  std::map<int, bool> shared;                    // whether the workpackage is a part of its job
  long long since = 0;                           // seconds since 1970
};

Status find_open(const Journal& journal, Open* open) {
  std::vector<Journal::Stored> all;
  TRY(journal.with_jobs(&all));
  std::map<int, JobUse> known;
  TRY(journal.job_uses(&known));
  open->since = std::time(nullptr);
  for (const Journal::Stored& stored : all) {
    const int id = stored.workpackage.id;
    const State state = stored.workpackage.outcome.state;
    const auto use = known.find(id);
    if (!has_ended(state) || stored.job_id.empty() || (use != known.end() && use->second.seconds))
      continue;
    open->workpackages.emplace(stored.job_id, id);
    open->names[stored.job_id] = job_of_name(stored.job_name);
    open->shared[id] = stored.job_name.find('@') != std::string::npos;
    if (stored.started > 0)
      open->since = std::min(open->since, static_cast<long long>(stored.started));
  }
  return Status::ok();
}

std::vector<NamedJob> jobs_of(const Open& open) {
  std::vector<NamedJob> jobs;
  for (const auto& [id, workpackage] : open.workpackages) {
    if (jobs.empty() || jobs.back().id != id) jobs.push_back({id, open.names.at(id)});
  }
  return jobs;
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
    TRY(journal.set_job_use(workpackage, use));
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
  TRY(find_open(journal, &open));
  while (!open.workpackages.empty()) {
    std::map<std::string, JobUse> uses;
    const std::vector<NamedJob> jobs = jobs_of(open);
    const Status asked = scheduler.usage(jobs, open.since - kMargin, &uses);
    if (!asked) {
      uses.clear();
      for (const NamedJob& job : jobs) uses[job.id].why = asked.message();
    }
    const bool last = !asked || Clock::now() >= until;
    TRY(journal.transaction([&] { return keep(uses, last, journal, &open); }));
    if (!last && !open.workpackages.empty())
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  return Status::ok();
}

}  // namespace tally
