#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "engine/base/accounts.h"
#include "engine/base/duration.h"
#include "engine/base/text.h"
#include "engine/execute/jobs/scheduler.h"
#include "engine/workspace/environment.h"
#include "engine/workspace/external_command.h"

namespace tally {
namespace {

bool contains_any(const std::string& text, const std::vector<const char*>& signs) {
  return std::ranges::any_of(
      signs, [&](const char* sign) { return text.find(sign) != std::string::npos; });
}

Refusal refusal_of(const std::string& words) {
  // A limit on queued jobs, for a user, an account or the whole cluster. A limit on a job's size is
  // not one of these.
  if (contains_any(words, {"job submit limit", "MaxSubmitJob", "Slurm temporarily unable to accept",
                           "Resource temporarily unavailable"})) {
    return Refusal::full;
  }
  if (contains_any(words,
                   {"Unable to contact slurm controller", "Socket timed out", "no answer within",
                    "Protocol authentication error", "Zero Bytes were transmitted",
                    "controller not responding", "Connection refused", "Connection timed out",
                    "Connection reset", "Munge decode failed", "Transport endpoint",
                    "Slurm backup controller in standby mode", "Communication connection failure",
                    "Message send failure", "Message receive failure", "Cannot allocate memory",
                    "Too many open files"})) {
    return Refusal::transient;
  }
  return Refusal::rejected;
}

// Reads why a submit command failed.
Refusal refusal_of(const CommandResult& result, const std::string& words, const std::string& id) {
  const Refusal refusal = refusal_of(words);
  const Refusal end = refusal_of_end(result, !id.empty());
  return end == Refusal::transient || refusal == Refusal::rejected ? end : refusal;
}

// The user's settings for squeue and sacct (SQUEUE_PARTITION, SLURM_TIME_FORMAT) could hide jobs.
// Only the variables that select the Slurm installation are kept.
std::vector<std::string> question_environment() {
  Environment environment = current_environment();
  for (auto entry = environment.begin(); entry != environment.end();) {
    const std::string& name = entry->first;
    const bool slurms = starts_with(name, "SLURM_") || starts_with(name, "SQUEUE_") ||
                        starts_with(name, "SACCT_") || starts_with(name, "SCANCEL_");
    const bool which = name == "SLURM_CONF" || name == "SLURM_CLUSTERS";
    entry = slurms && !which ? environment.erase(entry) : std::next(entry);
  }
  environment["SLURM_TIME_FORMAT"] = "%s";
  environment["LC_ALL"] = "C";
  return entries(environment);
}

std::string slurm_time(long long seconds) {
  return local_time(static_cast<std::time_t>(seconds), 'T');
}

long long number_of(const std::string& text) {
  return strtoll(text.c_str(), nullptr, 10);  // 0 for "N/A" and "Unknown"
}

std::vector<std::string> words_of_line(const std::string& text) {
  std::vector<std::string> words;
  for (std::string& word : split_strip(text, " ")) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

// Reads the job id from "123" or "123;cluster" (--parsable), or from "Submitted batch job 123" and
// what may follow. A site's wrapper may print other lines before and after it; the last line of one
// of these forms counts.
std::string id_of(const std::string& printed) {
  constexpr std::string_view submitted = "Submitted batch job ";
  std::string id;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    std::string_view text = strip(line);
    const bool sentence = starts_with(text, submitted);
    if (sentence) text.remove_prefix(submitted.size());
    const std::string_view word = text.substr(0, text.find_first_of(sentence ? " ;" : ";"));
    const bool number = word.find_first_not_of("0123456789_") == std::string_view::npos;
    if (!word.empty() && number && isdigit(static_cast<unsigned char>(word[0])) != 0) id = word;
  }
  return id;
}

// The output of squeue is requested in columns of fixed width, because names may hold any
// character.
constexpr size_t nodes_width = 256;
struct QueueColumn {
  const char* field;
  size_t width;
};
constexpr std::array<QueueColumn, 9> queue_columns{{{"JobArrayID", 64},
                                                    {"State", 32},
                                                    {"Reason", 64},
                                                    {"SubmitTime", 24},
                                                    {"StartTime", 24},
                                                    {"RestartCnt", 12},
                                                    {"PreemptTime", 24},
                                                    {"NodeList", nodes_width},
                                                    {"Name", 256}}};

std::string queue_format() {
  std::string format = "--Format=";
  for (const QueueColumn& column : queue_columns) {
    format += (format.back() == '=' ? "" : ",") + std::string(column.field) + ":" +
              std::to_string(column.width);
  }
  return format;
}

// Splits a line of these columns into fields. Returns nothing for any other line.
std::vector<std::string> columns_of(const std::string& line) {
  std::vector<std::string> fields;
  size_t at = 0;
  for (const QueueColumn& column : queue_columns) {
    if (at >= line.size()) return {};
    fields.emplace_back(strip(std::string_view(line).substr(at, column.width)));
    at += column.width;
  }
  return fields;
}

// Splits a line into `count` fields. The last field takes the rest of the line.
std::vector<std::string> fields_of(const std::string& line, size_t count) {
  std::vector<std::string> fields;
  size_t at = 0;
  while (fields.size() + 1 < count) {
    const size_t end = line.find('|', at);
    if (end == std::string::npos) return {};
    fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  fields.push_back(line.substr(at));
  return fields;
}

std::string plain_reason(const std::string& reason) {
  return reason == "None" || reason == "(null)" ? std::string() : reason;
}

// Reasons for waiting that will never pass.
bool is_hopeless(const std::string& reason) {
  static const std::set<std::string> known{
      "PartitionNodeLimit",       "PartitionTimeLimit", "PartitionConfig", "BadConstraints",
      "DependencyNeverSatisfied", "InvalidAccount",     "InvalidQOS"};
  return known.contains(reason);
}

// The nodes of a job, or "" if it has none yet.
std::string plain_nodes(const std::string& nodes) {
  return nodes == "None assigned" || nodes == "(null)" || nodes == "N/A" ? std::string() : nodes;
}

// "2-03:04:05", "04:05": days, hours, minutes and seconds.
std::optional<double> elapsed_seconds(const std::string& text) {
  const size_t dash = text.find('-');
  double seconds = dash == std::string::npos ? 0 : std::atof(text.c_str()) * 24;  // hours
  double rest = 0;
  const std::string clock = dash == std::string::npos ? text : text.substr(dash + 1);
  for (const std::string& part : split_strip(clock, ":")) {
    if (part.empty() || part.find_first_not_of("0123456789") != std::string::npos) return {};
    rest = rest * 60 + std::atof(part.c_str());
  }
  seconds = seconds * 3600 + rest;
  return seconds;
}

// Reads "1234K", "1.5G", or bytes. A text without a number has no value.
std::optional<double> mebibytes_of(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return {};
  constexpr double kStep = 1024;
  constexpr std::string_view kUnits = "KMGTP";
  double bytes = number;
  if (const size_t unit = kUnits.find(*end); *end != '\0' && unit != std::string_view::npos)
    bytes *= std::pow(kStep, static_cast<double>(unit + 1));
  return bytes / (kStep * kStep);
}

// A number above 0. Slurm says 0 for an energy that it does not measure.
std::optional<double> positive(const std::string& text) {
  const double number = std::atof(text.c_str());
  if (number <= 0) return {};
  return number;
}

// --- heterogeneous jobs: "12+0", "12+1" are the components of job 12 -----------------------------

struct ComponentId {
  std::string job;
  int place = 0;
};
ComponentId component_of(const std::string& id) {
  const size_t plus = id.find('+');
  if (plus == std::string::npos) return {id, 0};
  return {id.substr(0, plus), std::atoi(id.c_str() + plus + 1)};
}

template <typename Of>
using Components = std::map<std::string, std::map<int, Of>>;

void add_nodes(const std::string& more, std::string* nodes) {
  if (!more.empty()) *nodes += (nodes->empty() ? "" : ",") + more;
}

// How much an end says about the job as a whole. One component fails because the program does. It is
// cancelled or loses a node by itself.
int weight_of(const JobReport& report) {
  switch (report.state) {
    case JobState::ok:
      return 0;
    case JobState::failed:
      return report.word == "FAILED" ? 1 : 2;
    case JobState::retryable:
      return 3;
    default:
      return 4;  // not ended, or unknown: nothing may be concluded
  }
}

// The first component has the job's script. The job has ended when all of them have.
JobReport whole_job(const std::map<int, JobReport>& components) {
  JobReport whole = components.begin()->second;
  const bool waits = is_active(whole.state);
  for (auto entry = std::next(components.begin()); entry != components.end(); ++entry) {
    const JobReport& one = entry->second;
    add_nodes(one.nodes, &whole.nodes);
    whole.preempted = whole.preempted || one.preempted;
    if (waits) {
      if (whole.reason.empty() || (one.stuck && !whole.stuck)) whole.reason = one.reason;
      whole.stuck = whole.stuck || one.stuck;
    } else if (weight_of(one) > weight_of(whole)) {
      whole.state = one.state;
      whole.word = one.word;
      whole.reason = one.reason;
    }
  }
  return whole;
}

// The use of all components, each on its own nodes. A number that one of them lacks, the job lacks.
JobUse whole_use(const std::map<int, JobUse>& components) {
  JobUse whole = components.begin()->second;
  for (auto entry = std::next(components.begin()); entry != components.end(); ++entry) {
    const JobUse& one = entry->second;
    add_nodes(one.nodes, &whole.nodes);
    whole.seconds = whole.seconds && one.seconds
                        ? std::optional(std::max(*whole.seconds, *one.seconds))
                        : std::nullopt;
    whole.joules =
        whole.joules && one.joules ? std::optional(*whole.joules + *one.joules) : std::nullopt;
    if (one.max_rss) whole.max_rss = std::max(*one.max_rss, whole.max_rss.value_or(0));
    if (whole.why.empty()) whole.why = one.why;
  }
  return whole;
}

// Without the first component the answer is not about the job.
void take_whole(const Components<JobReport>& jobs, std::map<std::string, JobReport>* reports) {
  for (const auto& [id, components] : jobs) {
    if (components.contains(0)) (*reports)[id] = whole_job(components);
  }
}

class Slurm final : public Scheduler {
 public:
  Status submit(const JobRequest& request, std::string* id, Refusal* refusal) override {
    ExternalCommand spec;
    spec.words = words_of_line(request.submit);
    spec.words.push_back("--job-name=" + request.name);
    spec.words.push_back(request.script);
    spec.directory = request.directory;
    spec.environment = request.environment;
    const CommandResult result = run_external(spec);
    const std::string& program = spec.words.front();
    *refusal = Refusal::none;
    *id = id_of(result.out);
    if (result.status != 0) {
      const std::string said = error_text(result, program);
      *refusal = refusal_of(result, said, *id);
      return Status::error(said);
    }
    if (!id->empty()) return Status::ok();
    // The job may have been accepted. It is looked for by its name before another attempt.
    *refusal = Refusal::transient;
    return Status::error(program + " gave no job id: " + std::string(strip(result.out)));
  }

  Status find(const std::vector<std::string>& names, long long since,
              std::map<std::string, std::string>* ids) override {
    for (size_t at = 0; at < names.size(); at += batch) {
      const std::string list = joined(names, at);
      CommandResult result = run(
          {"squeue", "--noheader", "--array", "--states=all", "--name=" + list, "--format=%i|%j"});
      if (result.status != 0) return Status::error(error_text(result, "squeue"));
      take_names(result.out, ids);
      // The job ended long ago, and only the accounting still knows it.
      result = account({"--name=" + list, "--format=jobid,jobname"}, since);
      if (result.status == 0) take_names(result.out, ids);
      if (result.status != 0 && accounting_) return Status::error(error_text(result, "sacct"));
    }
    return Status::ok();
  }

  Status query(const std::vector<std::string>& ids, long long since,
               std::map<std::string, JobReport>* reports) override {
    for (size_t at = 0; at < ids.size(); at += batch) {
      TRY(query_some(ids, at, since, reports));
    }
    return Status::ok();
  }

  Status cancel(const std::vector<NamedJob>& jobs, std::vector<std::string>* cancelled) override {
    cancelled->clear();
    TRY(active_of(jobs, cancelled));
    if (cancelled->empty()) return Status::ok();
    ExternalCommand spec;
    spec.words = {"scancel"};
    spec.words.insert(spec.words.end(), cancelled->begin(), cancelled->end());
    spec.environment = environment_;
    const CommandResult result = run_external(spec);
    return result.status == 0 ? Status::ok() : Status::error(error_text(result, "scancel"));
  }

  Status usage(const std::vector<NamedJob>& jobs, long long since,
               std::map<std::string, JobUse>* uses) override {
    std::vector<std::string> ids;
    NamesById names;
    for (const NamedJob& job : jobs) {
      if (names.emplace(job.id, job.name).second) ids.push_back(job.id);
    }
    for (size_t at = 0; at < ids.size(); at += batch) {
      const std::string list = joined(ids, at);
      const CommandResult result =
          account({"--jobs=" + list, "--noconvert",
                   "--format=jobid,state,elapsedraw,consumedenergyraw,maxrss,nodelist,jobname"},
                  since, true);
      if (result.status == 0) take_usage(result.out, names, uses);
      if (result.status != 0 && accounting_) return Status::error(error_text(result, "sacct"));
      if (accounting_) continue;
      // squeue knows a job for some minutes after its end.
      const CommandResult queue = run({"squeue", "--noheader", "--array", "--states=all",
                                       "--jobs=" + list, "--format=%i|%T|%M|%N|%j"});
      if (queue.status == 0) take_queue_usage(queue.out, names, uses);
      for (size_t i = at; i < ids.size() && i < at + batch; ++i) {
        JobUse& use = (*uses)[ids[i]];
        if (use.why.empty()) use.why = "Slurm has no accounting here (slurmdbd)";
      }
    }
    return Status::ok();
  }

  Status describe(std::vector<std::pair<std::string, std::string>>* facts) override {
    facts->clear();
    const CommandResult version = run({"sbatch", "--version"});
    if (version.status != 0) return Status::error(error_text(version, "sbatch"));
    facts->emplace_back("Scheduler", strip(version.out));
    std::vector<QueueFacts> queues;
    TRY(partitions(&queues));
    for (const QueueFacts& queue : queues) facts->emplace_back("Partition", queue_text(queue));
    const bool kept = account({"--format=jobid"}, std::time(nullptr)).status == 0;
    facts->emplace_back("Accounting", kept ? "sacct answers"
                                           : "none: what jobs used is not known, and a job that "
                                             "ended long ago cannot be asked for");
    return Status::ok();
  }

  Status site(SiteFacts* facts) override {
    *facts = {};
    const CommandResult version = run({"sbatch", "--version"});
    if (version.status != 0) return Status::error(error_text(version, "sbatch"));
    facts->version = strip(version.out);
    TRY(partitions(&facts->queues));
    for (const std::string& line : split_strip(run({"scontrol", "show", "config"}).out, "\n")) {
      const std::vector<std::string> words = words_of_line(line);
      if (words.size() == 3 && words[0] == "ClusterName") facts->cluster = words[2];
    }
    // Without accounting there is nobody to charge.
    const CommandResult accounts =
        run({"sacctmgr", "--noheader", "--parsable2", "show", "associations",
             "user=" + effective_user(), "format=account"});
    for (const std::string& account : split_strip(accounts.status == 0 ? accounts.out : "", "\n")) {
      if (!account.empty() && !contains(facts->accounts, account))
        facts->accounts.push_back(account);
    }
    // A heading with a colon or a dot, then the names.
    const CommandResult kinds = run({"srun", "--mpi=list"});
    for (const std::string& line : split_strip(kinds.out + kinds.err, "\n")) {
      const std::vector<std::string> words = words_of_line(line);
      if (words.size() == 1 && words[0].find_first_of(":.") == std::string::npos)
        facts->mpi.push_back(words[0]);
    }
    return Status::ok();
  }

  void abandon_query() override { given_up_ = true; }

 private:
  // Ids per call. A command line has a maximum length.
  static constexpr size_t batch = 1000;

  static std::string joined(const std::vector<std::string>& list, size_t from) {
    std::string text;
    for (size_t i = from; i < list.size() && i < from + batch; ++i) {
      if (!text.empty()) text += ',';
      text += list[i];
    }
    return text;
  }

  // The ids of those of the jobs that are in the queue under their names. scancel takes an id and a
  // name, but only one name a command.
  Status active_of(const std::vector<NamedJob>& jobs, std::vector<std::string>* ids) {
    std::set<std::pair<std::string, std::string>> wanted;  // name and id
    std::set<std::string> distinct;
    for (const NamedJob& job : jobs) {
      wanted.emplace(job.name, job.id);
      distinct.insert(job.name);
    }
    const std::vector<std::string> names(distinct.begin(), distinct.end());
    std::set<std::string> found;
    for (size_t at = 0; at < names.size(); at += batch) {
      const CommandResult queue = run(
          {"squeue", "--noheader", "--array", "--name=" + joined(names, at), "--format=%i|%F|%j"});
      if (queue.status != 0) return Status::error(error_text(queue, "squeue"));
      for (const std::string& line : split_strip(queue.out, "\n")) {
        const std::vector<std::string> fields = fields_of(line, 3);
        if (fields.empty()) continue;
        const bool component = fields[0].find('+') != std::string::npos;
        const std::string task = component_of(fields[0]).job;
        const std::string &job = component ? task : fields[1], &name = fields[2];
        const bool whole = wanted.contains({name, ""}) || wanted.contains({name, job});
        if (whole || wanted.contains({name, task})) found.insert(whole ? job : task);
      }
    }
    ids->assign(found.begin(), found.end());
    return Status::ok();
  }

  CommandResult run(std::vector<std::string> words) {
    return ask_scheduler(std::move(words), environment_, &given_up_);
  }

  Status partitions(std::vector<QueueFacts>* queues) {
    const CommandResult result = run({"sinfo", "--noheader", "--format=%P|%D|%c|%m|%G|%l|%a"});
    if (result.status != 0) return Status::error(error_text(result, "sinfo"));
    *queues = queues_of_lines(result.out);
    return Status::ok();
  }

  // Runs sacct if there is accounting. The first call finds out, and the answer is kept. Without
  // `steps` it reports jobs alone.
  CommandResult account(std::vector<std::string> what, long long since, bool steps = false) {
    CommandResult result;
    if (!accounting_) return result;
    std::vector<std::string> words{"sacct", "--noheader", "--parsable2",
                                   "--starttime=" + slurm_time(since)};
    if (!steps) words.emplace_back("--allocations");
    words.insert(words.end(), what.begin(), what.end());
    result = run(std::move(words));
    if (result.status != 0 && contains_any(result.err, {"accounting storage is disabled",
                                                        "sacct: No such file or directory"})) {
      accounting_ = false;
    }
    return result;
  }

  using NamesById = std::map<std::string, std::string>;

  // Whether a record is that of the job with this id that was submitted under its name. Otherwise
  // *uses says whose it is, unless ours is known.
  static bool is_ours(const std::string& id, const std::string& name, const NamesById& names,
                      std::map<std::string, JobUse>* uses) {
    const auto known = names.find(id);
    if (known == names.end()) return false;
    if (known->second == name) return true;
    JobUse& use = (*uses)[id];
    if (!use.seconds)
      use.why = fmt::format("what Slurm has of job {} is of another job, '{}'", id, name);
    return false;
  }

  // Lines of jobs ("12"), of their components ("12+1") and of their steps ("12.batch", "12+1.0"),
  // which have names of their own and follow their job.
  static void take_usage(const std::string& text, const NamesById& names,
                         std::map<std::string, JobUse>* uses) {
    std::string of;  // the job of the steps that follow; empty: another's
    Components<JobUse> jobs;
    for (const std::string& line : split_strip(text, "\n")) {
      const std::vector<std::string> fields = fields_of(line, 7);
      if (fields.empty()) continue;
      const size_t dot = fields[0].find('.');
      const ComponentId id = component_of(fields[0].substr(0, dot));
      if (dot == std::string::npos)
        of = is_ours(id.job, fields[6], names, uses) ? id.job : std::string();
      if (of == id.job) add_record(fields, dot != std::string::npos, &jobs[id.job][id.place]);
    }
    for (const auto& [id, components] : jobs) (*uses)[id] = whole_use(components);
  }

  static void add_record(const std::vector<std::string>& fields, bool is_step, JobUse* use) {
    if (const std::optional<double> rss = mebibytes_of(fields[4]); rss && *rss > 0)
      use->max_rss = std::max(*rss, use->max_rss.value_or(0));
    const std::optional<double> joules = positive(fields[3]);
    if (is_step) {
      // Steps run at the same time, and each has the energy of its nodes.
      if (joules) use->joules = std::max(*joules, use->joules.value_or(0));
      return;
    }
    use->nodes = plain_nodes(fields[5]);
    if (joules) use->joules = joules;
    const JobState state = slurm_state(fields[1]);
    if (is_active(state) || state == JobState::unheard) {
      use->why = "the accounting has no complete record of job " + fields[0] +
                 " yet; `tally continue` asks again";
    } else {
      use->seconds = std::atof(fields[2].c_str());
      use->why.clear();
    }
  }

  static void take_queue_usage(const std::string& text, const NamesById& names,
                               std::map<std::string, JobUse>* uses) {
    Components<JobUse> jobs;
    for (const std::string& line : split_strip(text, "\n")) {
      const std::vector<std::string> fields = fields_of(line, 5);
      const ComponentId id = component_of(fields.empty() ? std::string() : fields[0]);
      if (fields.empty() || !is_ours(id.job, fields[4], names, uses)) continue;
      if (is_active(slurm_state(fields[1]))) continue;
      JobUse& use = jobs[id.job][id.place];
      use.seconds = elapsed_seconds(fields[2]);
      use.nodes = plain_nodes(fields[3]);
    }
    for (const auto& [id, components] : jobs) (*uses)[id] = whole_use(components);
  }

  static void take_names(const std::string& text, std::map<std::string, std::string>* ids) {
    for (const std::string& line : split_strip(text, "\n")) {
      const std::vector<std::string> fields = fields_of(line, 2);
      if (fields.size() == 2)
        ids->emplace(fields[1], fields[0].substr(0, fields[0].find_first_of("_+")));
    }
  }

  // squeue knows which jobs wait or run, and why. sacct knows how the others ended, even long after
  // squeue has forgotten them. Without accounting, squeue's report of an ended job is used.
  Status query_some(const std::vector<std::string>& ids, size_t at, long long since,
                    std::map<std::string, JobReport>* reports) {
    const std::string list = joined(ids, at);
    const CommandResult queue =
        run({"squeue", "--noheader", "--array", "--states=all", "--jobs=" + list, queue_format()});
    // squeue reports an error when it knows none of the ids. That is a valid answer.
    const bool heard =
        queue.status == 0 || queue.err.find("Invalid job id specified") != std::string::npos;
    if (heard) take_reports(queue.out, reports);
    std::vector<std::string> open;
    for (size_t i = at; i < ids.size() && i < at + batch; ++i) {
      const auto report = reports->find(ids[i]);
      if (report == reports->end() || !is_active(report->second.state)) open.push_back(ids[i]);
    }
    CommandResult account_says;
    if (!open.empty()) {
      account_says = account({"--jobs=" + joined(open, 0),
                              "--format=jobid,state,reason,submit,start,nodelist,jobname"},
                             since);
      if (account_says.status == 0) take_ends(account_says.out, reports);
    }
    if (!heard && account_says.status != 0) return Status::error(error_text(queue, "squeue"));
    // If one of the two gave no answer, it may know jobs that the other does not. Such jobs count
    // as unheard.
    const bool both = heard && (open.empty() || account_says.status == 0 || !accounting_);
    for (const std::string& id : both ? std::vector<std::string>() : open) reports->try_emplace(id);
    return Status::ok();
  }

  static void take_reports(const std::string& text, std::map<std::string, JobReport>* reports) {
    Components<JobReport> jobs;
    for (const std::string& line : split_strip(text, "\n")) {
      std::vector<std::string> fields = columns_of(line);
      if (fields.empty()) continue;
      const std::string restarts = fields[5], preempted = fields[6];
      fields.erase(fields.begin() + 5, fields.begin() + 7);
      // A column that is full may have been cut.
      if (fields[5].size() == nodes_width) fields[5] += "...";
      JobReport report = report_of(fields);
      if (restarts.find_first_not_of("0123456789") == std::string::npos) {
        report.restarts = static_cast<int>(number_of(restarts));
      }
      report.preempted = number_of(preempted) > 0;
      const ComponentId id = component_of(fields[0]);
      jobs[id.job][id.place] = std::move(report);
    }
    take_whole(jobs, reports);
  }

  // The fields are id, state, reason, submitted, started, nodes, name.
  static JobReport report_of(const std::vector<std::string>& fields) {
    JobReport report;
    report.state = slurm_state(fields[1]);
    report.word = fields[1].substr(0, fields[1].find_first_of(" +"));
    report.reason = plain_reason(fields[2]);
    report.stuck = is_hopeless(report.reason);
    report.nodes = plain_nodes(fields[5]);
    report.name = fields[6];
    report.submitted = number_of(fields[3]);
    report.started = number_of(fields[4]);
    return report;
  }

  // Reads the ended jobs from sacct. sacct reports a job that the controller has lost as waiting or
  // running for ever, and its records lag behind. Therefore only ended jobs count, and only records
  // that already have their name.
  static void take_ends(const std::string& text, std::map<std::string, JobReport>* reports) {
    Components<JobReport> jobs;
    for (const std::string& line : split_strip(text, "\n")) {
      const std::vector<std::string> fields = fields_of(line, 7);
      if (fields.empty()) continue;
      const ComponentId id = component_of(fields[0]);
      jobs[id.job][id.place] = report_of(fields);
    }
    std::map<std::string, JobReport> whole;
    take_whole(jobs, &whole);
    for (auto& [id, report] : whole) {
      const auto known = reports->find(id);
      if (is_active(report.state)) continue;
      if (known != reports->end()) {
        if (known->second.name != report.name) continue;
        if (report.reason.empty()) report.reason = known->second.reason;
        report.preempted = known->second.preempted;
      }
      (*reports)[id] = std::move(report);
    }
  }

  const std::vector<std::string> environment_ = question_environment();
  std::atomic<bool> given_up_ = false;
  std::atomic<bool> accounting_ = true;
};

}  // namespace

JobState slurm_state(const std::string& text) {
  static const std::map<std::string, JobState> states{
      {"PENDING", JobState::queued},       {"CONFIGURING", JobState::queued},
      {"REQUEUED", JobState::queued},      {"REQUEUE_HOLD", JobState::queued},
      {"REQUEUE_FED", JobState::queued},   {"RESV_DEL_HOLD", JobState::queued},
      {"SPECIAL_EXIT", JobState::queued},  {"POWER_UP_NODE", JobState::queued},
      {"RUNNING", JobState::running},      {"COMPLETING", JobState::running},
      {"SUSPENDED", JobState::running},    {"STOPPED", JobState::running},
      {"STAGE_OUT", JobState::running},    {"SIGNALING", JobState::running},
      {"RESIZING", JobState::running},     {"UPDATE_DB", JobState::running},
      {"COMPLETED", JobState::ok},         {"NODE_FAIL", JobState::retryable},
      {"BOOT_FAIL", JobState::retryable},  {"PREEMPTED", JobState::retryable},
      {"REVOKED", JobState::retryable},    {"FAILED", JobState::failed},
      {"CANCELLED", JobState::failed},     {"TIMEOUT", JobState::failed},
      {"OUT_OF_MEMORY", JobState::failed}, {"DEADLINE", JobState::failed},
      {"LAUNCH_FAILED", JobState::failed}, {"RECONFIG_FAIL", JobState::failed}};
  const auto found = states.find(text.substr(0, text.find_first_of(" +")));
  // A state that this code does not know, from a later Slurm, leads to no conclusion.
  return found != states.end() ? found->second : JobState::unheard;
}

std::unique_ptr<Scheduler> make_slurm() {
  return std::make_unique<Slurm>();
}

}  // namespace tally
