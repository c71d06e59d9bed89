#include "engine/execute/jobs/submission.h"
#include "engine/execute/jobs/jobs.h"
#include "engine/execute/task.h"
#include "engine/workpackage/outcome.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <random>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/presence.h"
#include "engine/base/secrets.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/workflow/job_options.h"
#include "engine/workflow/scheduler_table.h"

namespace tally {
namespace {

// The job script's message about a failure, in one line: the first error of the first process that
// failed. It is the program's own text, of any length and with any bytes.
std::string reason_left(const Task& task) {
  constexpr size_t longest = 500;
  const std::string* file = task.values().find("reason_file");
  std::string text;
  if (file == nullptr || file->empty()) return {};
  if (!read_file(absolute_path(*file, task.work_dir()), &text)) return {};
  text = std::string(strip(text.substr(0, text.find('\n'))));
  std::string line;
  for (size_t at = 0, bytes = 0; at < text.size(); at += bytes) {
    bytes = utf8_length(std::string_view(text).substr(at));
    const bool shown = bytes > 1 || (bytes == 1 && text[at] >= ' ' && text[at] != 127);
    if (line.size() + bytes > longest) return line + " ...";
    line += shown ? text.substr(at, bytes) : "?";
    bytes = std::max<size_t>(bytes, 1);
  }
  return line;
}

// Derives the reason from the scheduler's state.
Reason reason_of_end(const JobEnd& end) {
  struct Word {
    std::string_view word;
    Reason reason;
  };
  static constexpr std::array<Word, 7> words{{{"CANCELLED", Reason::job_cancelled},
                                              {"TIMEOUT", Reason::job_time_limit},
                                              {"DEADLINE", Reason::job_time_limit},
                                              {"OUT_OF_MEMORY", Reason::job_memory},
                                              {"NODE_FAIL", Reason::job_node},
                                              {"PREEMPTED", Reason::job_preempted},
                                              {"PENDING", Reason::job_waited}}};
  if (end.kind == JobEnd::Kind::exit) return Reason::job_exit;
  if (end.kind == JobEnd::Kind::rejected) return Reason::job_rejected;
  if (end.kind == JobEnd::Kind::lost) return Reason::job_lost;
  for (const Word& entry : words) {
    if (entry.word == end.word) return entry.reason;
  }
  return Reason::job_failed;
}

// The last `count` lines of a file that do not come from the scheduler. If there are none, the last
// lines of any kind.
std::string last_words(const std::string& file, size_t count) {
  std::vector<std::string> own;
  const std::string text = last_lines(file, 100);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!starts_with(line, "srun: ") && !starts_with(line, "slurmstepd")) own.push_back(line);
  }
  if (own.empty()) return last_lines(file, count);
  if (own.size() > count) own.erase(own.begin(), own.end() - static_cast<std::ptrdiff_t>(count));
  return join(own, "\n") + "\n";
}

// Appends the last output of the job's program below the text in the outcome's detail.
void add_last_lines(const Task& task, Outcome* outcome) {
  const std::string* name = task.values().find("stderrlogfile");
  const std::string file =
      absolute_path(name != nullptr && !name->empty() ? *name : "stderr", task.work_dir());
  const std::string lines = last_words(file, 5);
  if (strip(lines).empty()) return;
  outcome->file = file;
  outcome->detail =
      outcome->detail.str().substr(0, outcome->detail.str().find('\n')) + "\n" + lines;
}

Outcome failure_of_job(const Task& task, const JobEnd& end) {
  Outcome outcome = failure(reason_of_end(end), end.words);
  outcome.exit_code = end.exit_code;
  if (end.kind == JobEnd::Kind::lost) outcome.state = State::lost;
  if (end.kind == JobEnd::Kind::exit) {
    const std::string* out = task.values().find("stdoutlogfile");
    const std::string path =
        absolute_path(out != nullptr && !out->empty() ? *out : "stdout", task.work_dir());
    outcome.detail = reason_left(task);
    outcome.directory = path.substr(0, path.rfind('/'));
  }
  if (end.kind != JobEnd::Kind::rejected) add_last_lines(task, &outcome);
  return outcome;
}

// Returns done, an outcome that the step expects, or failed. A failure carries the scheduler's
// message and the last output of the job's program.
Outcome outcome_of_job(const Task& task, const JobEnd& end) {
  std::string outcome;
  // The scheduler's word about an allocation that several share is said of none of them: one has
  // its own exit status, or did not end in time.
  const bool shared = task.step().pack.kind.value == "steps";
  if (end.kind == JobEnd::Kind::exit || (shared && end.exit_code != 0))
    outcome = task.step().kinds->outcome_of(end.exit_code);
  if (!shared && end.word == "TIMEOUT") outcome = "timeout";
  if (!shared && end.word == "OUT_OF_MEMORY") outcome = "oom";
  if (end.kind == JobEnd::Kind::exit && end.exit_code == 0) return in_state(State::done);
  if (task.step().kinds->is_expected(task.step(), outcome, task.values().lookup()) &&
      end.kind != JobEnd::Kind::lost) {
    return in_state(State::expected, expected_reason(outcome));
  }
  return failure_of_job(task, end);
}

// Reads a time such as "2026-11-21T01:18:53" from the run's record. Returns 0 for any other text.
long long epoch_seconds(const std::string& text) {
  std::tm local{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local) == nullptr) return 0;
  local.tm_isdst = -1;
  return std::mktime(&local);
}

// Makes a name usable in a job's name. squeue takes lists separated by commas, and "#" and "@" mark
// the workpackage within a shared job, so these are replaced.
std::string in_job_name(std::string name) {
  constexpr size_t longest = 60;
  if (name.size() > longest) name.resize(longest);
  for (char& c : name) {
    if (isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') c = '_';
  }
  return name;
}

// Returns a name such as "benchmark-step-000003-1a2b3c4d". It is readable, and unique to run,
// workpackage and attempt. The engine finds a job by its name, and uses the name to check an id,
// because the scheduler may use ids again.
std::string job_name(const RunContext& context, int id) {
  std::random_device random;
  const std::string run_begin = context.run_dir + context.run.journal().run().start;
  const std::string seed = std::to_string(random()) + std::to_string(random());
  const std::string digest = Digest().add(run_begin).add(seed).hex();
  const std::string step = context.graph.step_of(context.graph[id]).name.value;
  const auto& table = context.graph.step_of(context.graph[id]).scheduler;
  std::string name = in_job_name(context.run.journal().run().benchmark);
  if (table && (name.empty() || !is_letter(name[0]))) name.insert(0, table->letter);
  return name + "-" + in_job_name(step) + "-" + padded_id(id) + "-" + digest.substr(0, 8);
}

// Reads "NAME", "NAME#4" (task 4 of an array) or "NAME@4" (one of the steps of an allocation).
void take_name(const std::string& name, Job* job) {
  job->request.name = job_of_name(name);
  job->member = name.substr(job->request.name.size());
}

// The files in which the platform's job script reports its end. JUBE's platforms have two of the
// three.
JobMarks job_marks(const Task& task) {
  const auto file = [&](const char* name, const char* otherwise) {
    const std::string* value = task.values().find(name);
    const std::string path = value != nullptr ? expand_path(*value) : otherwise;
    return path.empty() ? path : absolute_path(path, task.work_dir());
  };
  JobMarks marks;
  marks.done_file = file("done_file", "");
  marks.error_file = file("error_file", "");
  marks.status_file = file("status_file", marks.done_file.empty() ? "job.status" : "");
  return marks;
}

// Reads the platform's rules for jobs. Returns why none of its jobs can be submitted, or an empty
// string.
std::string read_platform(const Task& task, JobRules* rules, PackRule* pack) {
  const Platform& platform = task.platform();
  if (platform.submit.empty() || platform.submit_script.empty()) {
    return "platform '" + platform.scheduler +
           "' needs the parameters submit and submit_script (its executeset)";
  }
  Status valid = read_job_rules(task.values().lookup(), rules);
  if (valid) valid = task.step().kinds->pack_rule(task.step(), task.values().lookup(), pack);
  std::string wrong = valid.message();
  // Constant texts were checked before the run began.
  for (const JobFault& fault : task.step().kinds->job_faults(task.step(), task.values().lookup())) {
    if (wrong.empty() && !fault.constant) wrong = fault.message;
  }
  return wrong;
}

// Why the job may not have this environment, as `export SBATCH_TIMELIMIT=50` of a command or a name
// in `job_environment` makes it; or an empty string. It reaches srun, too: Slurm sets some of its
// variables in a job, and not SLURM_GPUS_PER_NODE. The job script sets srun's number of CPUs
// itself.
std::string environment_fault(const Environment& environment, const JobRequests& requests) {
  for (const auto& [name, value] : environment) {
    if (name == "SRUN_CPUS_PER_TASK") continue;
    if (const auto fault = variable_fault(name, value, requests))
      return fault->message + ": " + fault->hint;
  }
  return {};
}

// Returns shell lines that set what the workflow changes in the environment outside of the job's
// script: exported parameters, exports by operations. Slurm passes its own variables on by itself.
std::string environment_lines(const EnvironmentChanges& changes) {
  std::string lines;
  for (const auto& [name, value] : changes) {
    if (!is_variable_name(name) || starts_with(name, "SLURM_")) continue;
    lines += value ? "export " + name + "=" + shell_quote(*value) + "\n" : "unset " + name + "\n";
  }
  return lines;
}

}  // namespace

Status JobSubmission::submit(Task& task, bool* taken) {
  Job job;
  PackRule pack;
  std::string wrong = read_platform(task, &job.rules, &pack);
  std::string passed = job.rules.environment;
  if (task.step().scheduler) passed += " " + join(task.step().scheduler->environment, " ");
  Environment environment =
      with_changes(job_environment(task.base(), passed), task.environment_for_script());
  environment["PWD"] = task.work_dir();
  WorkpackageNode& workpackage = context_.graph[task.id()];
  job.named = !workpackage.job_name.empty();
  if (wrong.empty() && !job.named)
    wrong = environment_fault(environment, requests_of_job(task.step(), task.values().lookup()));
  *taken = wrong.empty();
  if (!*taken) {
    task.fail(Reason::platform, wrong);
    return Status::ok();
  }
  job.workpackage = task.id();
  job.label = workpackage.directory;
  job.marks = job_marks(task);
  job.id = workpackage.job_id;
  job.named_at = epoch_seconds(context_.run.journal().run().start);
  if (!job.named) {
    workpackage.job_name = job_name(context_, task.id());
    forget_earlier_try(job.marks, workpackage.attempts > 0 || workpackage.restored);
    if (Status s = write_environment(job.marks, task.environment_for_script()); !s) {
      *taken = false;
      task.fail(Reason::host, s);
      return Status::ok();
    }
  }
  take_name(workpackage.job_name, &job);
  job.request.directory = task.work_dir();
  job.request.script = task.platform().submit_script;
  job.request.submit = task.platform().submit;
  job.request.environment = entries(environment);
  resubmits_[task.id()] = job.rules.resubmits;
  if (pack.kind != PackRule::Kind::none && job.id.empty()) {
    return packs_.add(std::move(job), pack, task);
  }
  follower_.add(std::move(job));
  return Status::ok();
}

void JobSubmission::forget_earlier_try(const JobMarks& marks, bool tried) {
  // Files of an earlier attempt say nothing about this job.
  for (const std::string* mark : {&marks.status_file, &marks.done_file, &marks.error_file}) {
    if (!mark->empty()) unlink(mark->c_str());
  }
  // The earlier attempt's job may be requeued. This line keeps it from working in the new folder
  // until the new job is submitted.
  if (const std::string owner = marks.owner_file(); tried && !owner.empty()) {
    if (Status s = write_file(owner, "not submitted\n"); !s) context_.log.write(s.message());
  }
}

// The scheduler may be asked not to pass the environment of its submit command on (--export).
Status JobSubmission::write_environment(const JobMarks& marks,
                                        const EnvironmentChanges& changes) const {
  const std::string file = marks.environment_file();
  const std::string root = absolute_path(context_.graph.run().rundir);
  if (file.empty()) return Status::ok();
  const std::string lines = environment_lines(changes);
  return lines.empty() ? remove_own(root, file) : write_own_file(root, file, lines, private_mode);
}

Status JobSubmission::submit_packs(bool all) {
  std::vector<Job> ready;
  TRY(packs_.take(all, context_.graph.run().rundir, &ready));
  for (Job& job : ready) {
    const auto note_name = [&](const Job& member) {
      context_.graph[member.workpackage].job_name = member.journal_name();
    };
    note_name(job);
    for (const Job& member : job.members) note_name(member);
    follower_.add(std::move(job));
  }
  return Status::ok();
}

bool JobSubmission::take_end(const JobEnd& end, Task& task, bool may_submit) {
  Outcome outcome = outcome_of_job(task, end);
  const bool well = finished_well(outcome.state);
  task.end(std::move(outcome));
  WorkpackageNode& workpackage = context_.graph[end.workpackage];
  const bool again = !well && end.kind == JobEnd::Kind::retryable &&
                     workpackage.resubmits < resubmits_[end.workpackage] && may_submit;
  if (again) ++workpackage.resubmits;
  return again;
}

std::vector<int> JobSubmission::unsubmitted() const {
  std::vector<int> workpackages = follower_.unsubmitted();
  const std::vector<int> gathered = packs_.members();
  workpackages.insert(workpackages.end(), gathered.begin(), gathered.end());
  return workpackages;
}

Status JobSubmission::forget_names(const std::vector<int>& workpackages) {
  std::vector<std::pair<int, std::string>> names;
  for (const int id : workpackages) names.emplace_back(id, std::string());
  return context_.run.journal().jobs_named(names);
}

}  // namespace tally
