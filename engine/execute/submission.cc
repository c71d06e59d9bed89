// Workpackages that go to a scheduler: submitted as a job, ended by what became of it.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <random>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/base/text.h"
#include "engine/execute/engine.h"

namespace tally {
namespace {

// "2026-11-21T01:18:53" of the run's record; 0 when it is not that.
long long seconds_of(const std::string& text) {
  std::tm local{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &local) == nullptr) return 0;
  local.tm_isdst = -1;
  return std::mktime(&local);
}

// A name as a part of a job's name: squeue takes lists with commas, "#" and "@" say which of
// several workpackages of the job is meant.
std::string in_job_name(std::string name) {
  constexpr size_t longest = 60;
  if (name.size() > longest) name.resize(longest);
  for (char& c : name) {
    if (isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '.') c = '_';
  }
  return name;
}

// What the job script says about a failure, in one line: the first error, of the first process that
// failed. A program's own words: of any length and any bytes.
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

// By the scheduler's word for what it did.
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

// The last `count` lines of a file that are not the scheduler's; of none such, the last ones.
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

// What the job's program said last, below the words in the outcome's detail.
void add_last_lines(const Task& task, Outcome* outcome) {
  const std::string* name = task.values().find("stderrlogfile");
  const std::string file =
      absolute_path(name != nullptr && !name->empty() ? *name : "stderr", task.work_dir());
  const std::string lines = last_words(file, 5);
  if (strip(lines).empty()) return;
  outcome->file = file;
  outcome->detail = outcome->detail.substr(0, outcome->detail.find('\n')) + "\n" + lines;
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

}  // namespace

// "benchmark-step-000003-1a2b3c4d": for people, and unique to run, workpackage and try. A job can
// be found again by it, and its id, which the scheduler may use again, can be checked.
std::string Engine::job_name(int id) const {
  std::random_device random;
  const std::string place = absolute_path(run_dir_) + journal_.run().start;
  const std::string seed = std::to_string(random()) + std::to_string(random());
  const std::string digest = Digest().add(place).add(seed).hex();
  const std::string step = graph_.step_of(graph_[id]).name.value;
  return in_job_name(journal_.run().benchmark) + "-" + in_job_name(step) + "-" + padded_id(id) +
         "-" + digest.substr(0, 8);
}

// "NAME", "NAME#4" (task 4 of an array), "NAME@4" (one of the steps of an allocation).
void Engine::take_name(const std::string& name, Job* job) {
  const size_t place = name.find_first_of("#@");
  job->request.name = name.substr(0, place);
  if (place != std::string::npos) job->place = name.substr(place);
}

// Where the platform's job script says how it ended; JUBE's platforms know two of the three.
JobMarks Engine::job_marks(const Task& task) const {
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

Status Engine::submit(Task& task) {
  const int id = task.id();
  WorkpackageNode& workpackage = graph_[id];
  if (task.platform().submit.empty() || task.platform().submit_script.empty()) {
    task.fail(Reason::platform,
              "platform '" + task.platform().scheduler +
                  "' needs the parameters submit and submit_script (its executeset)");
    return ended(task);
  }
  Job job;
  PackRule pack;
  std::string wrong;
  if (Status s = read_job_rules(task.values().lookup(), &job.rules); !s) wrong = s.message();
  if (wrong.empty())
    task.step().kinds->pack_rule(task.step(), task.values().lookup(), &pack, &wrong);
  const std::string& scheduler = task.platform().scheduler;
  if (scheduler == "pbs" || scheduler == "lsf") {
    wrong = "jobs of " + scheduler + " are not submitted by tally yet: its script is \"" +
            task.work_dir() + "/" + task.platform().submit_script +
            "\", and `tally script` writes all of them";
  }
  if (wrong.empty() && pack.kind != PackRule::Kind::none && task.platform().scheduler != "slurm") {
    wrong = "pack needs Slurm, and its platform's scheduler is " + task.platform().scheduler;
  }
  if (!wrong.empty()) {
    task.fail(Reason::platform, wrong);
    return ended(task);
  }
  job.workpackage = id;
  job.label = workpackage.directory;
  job.marks = job_marks(task);
  job.named = !workpackage.job_name.empty();
  job.id = workpackage.job_id;
  job.named_at = seconds_of(journal_.run().start);
  if (!job.named) {
    workpackage.job_name = job_name(id);
    // What an earlier try left is not this job's word.
    for (const std::string* mark :
         {&job.marks.status_file, &job.marks.done_file, &job.marks.error_file}) {
      if (!mark->empty()) unlink(mark->c_str());
    }
    // Nor may that one's job, should somebody requeue it, work in the new folder until this one is
    // submitted.
    if (const std::string owner = job.marks.owner_file();
        workpackage.attempts > 0 && !owner.empty()) {
      if (Status s = write_file(owner, "not submitted\n"); !s) log_.write(s.message());
    }
  }
  take_name(workpackage.job_name, &job);
  job.request.directory = task.work_dir();
  job.request.script = task.platform().submit_script;
  job.request.submit = task.platform().submit;
  Environment environment =
      with_changes(job_environment(task.base(), job.rules.environment), task.environment());
  environment["PWD"] = task.work_dir();
  job.request.environment = entries(environment);
  resubmits_[id] = job.rules.resubmits;
  if (pack.kind != PackRule::Kind::none && job.id.empty()) {
    return packs_.add(std::move(job), pack, task);
  }
  jobs_.add(std::move(job));
  return Status::ok();
}

// JobPacks that are full, and all of them once nothing is left that could join one.
Status Engine::submit_packs() {
  std::vector<Job> ready;
  if (Status s = packs_.take(by_pid_.empty(), graph_.run().rundir, &ready); !s) return s;
  for (Job& job : ready) {
    const auto note_name = [&](const Job& member) {
      graph_[member.workpackage].job_name = member.journal_name();
    };
    note_name(job);
    for (const Job& member : job.members) note_name(member);
    jobs_.add(std::move(job));
  }
  return Status::ok();
}

Status Engine::take_job_ends() {
  std::vector<JobEnd> ends;
  if (Status s = jobs_.turn(&ends); !s) return s;
  for (const JobEnd& end : ends) {
    if (Status s = job_ended(end); !s) return s;
  }
  return Status::ok();
}

Status Engine::job_ended(const JobEnd& end) {
  Task& task = *tasks_.at(end.workpackage);
  WorkpackageNode& workpackage = graph_[end.workpackage];
  std::string outcome;
  if (end.kind == JobEnd::Kind::exit) outcome = task.step().kinds->outcome_of(end.exit_code);
  if (end.word == "TIMEOUT" && began(task)) outcome = "timeout";
  if (end.word == "OUT_OF_MEMORY") outcome = "oom";
  if (end.kind == JobEnd::Kind::exit && end.exit_code == 0) {
    task.end(in_state(State::done));
  } else if (task.step().kinds->is_expected(task.step(), outcome, task.values().lookup()) &&
             end.kind != JobEnd::Kind::lost) {
    task.end(in_state(State::expected, expected_reason(outcome)));
  } else {
    task.end(failure_of_job(task, end));
    again_ = end.kind == JobEnd::Kind::retryable &&
             workpackage.resubmits < resubmits_[end.workpackage] && may_start();
    if (again_) ++workpackage.resubmits;
  }
  return ended(task);
}

// Whether it came to its turn: of several in one allocation, those that did not have no result when
// the time is over.
bool Engine::began(const Task& task) const {
  if (task.step().pack.kind.value != "steps") return true;
  const std::string* out = task.values().find("stdoutlogfile");
  return path_exists(absolute_path(out != nullptr ? *out : "stdout", task.work_dir()));
}

// What is not in the queue yet is not begun.
Status Engine::put_back(const std::vector<int>& workpackages, Reason reason) {
  for (const int id : workpackages) {
    if (Status s = set_state(id, State::pending, reason); !s) return s;
  }
  return Status::ok();
}

// Somebody asked the engine to stop while jobs are in the queue: they are left, for `continue`, or
// cancelled. False: it was not meant.
Status Engine::stop_jobs(bool* stop) {
  *stop = true;
  const size_t count = jobs_.ids().size();
  if (count == 0) return Status::ok();
  const int asked = processes_.interrupted();
  status_line_.finish();
  auto answer = RunOptions::OnInterrupt::leave;
  if (options_.on_interrupt && processes_.by_person()) {
    answer = options_.on_interrupt(count, [&] { return processes_.interrupted() > asked; });
  }
  if (answer == RunOptions::OnInterrupt::keep_running) {
    *stop = false;
    return Status::ok();
  }
  if (answer == RunOptions::OnInterrupt::leave) {
    log_.write("stopped; " + std::to_string(count) + " jobs are left in the queue");
    return Status::ok();
  }
  std::vector<int> workpackages;
  if (Status s = jobs_.cancel_all(&workpackages); !s) {
    log_.write(s.message());
    status_line_.print(s.message() + "; the jobs are left in the queue", true);
    return Status::ok();
  }
  log_.write(std::to_string(count) + " jobs cancelled");
  std::vector<std::pair<int, std::string>> names;
  for (const int id : workpackages) names.emplace_back(id, std::string());
  if (Status s = journal_.jobs_named(names); !s) return s;
  return put_back(workpackages, Reason::job_withdrawn);
}

}  // namespace tally
