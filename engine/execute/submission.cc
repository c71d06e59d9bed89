// Workpackages that go to a scheduler: submitted as a job, ended by what became of it.
#include "engine/execute/engine.h"

namespace tally {

// Unique to run and workpackage, and the same each time: a job can be found again by it.
std::string Engine::job_name(int id) const {
  std::string digest = content_hash({absolute_path(run_dir_) + journal_.run().start, {}, {}, {}});
  return "tally-" + padded_id(journal_.run().id) + "-" + padded_id(id) + "-" + digest.substr(0, 8);
}

std::string Engine::status_file(const Task& task) const {
  const std::string* name = task.values().find("status_file");
  return absolute_path(name != nullptr && !name->empty() ? *name : "job.status", task.work_dir());
}

Status Engine::submit(Task& task) {
  const int id = task.id();
  Package& package = graph_[id];
  if (!package.job_name.empty()) {
    bool found = false;
    if (Status s = jobs_.adopt(id, package.job_name, package.job_id, status_file(task), &found);
        !s) {
      return s;
    }
    if (found) return Status::ok();
  }
  if (task.platform().submit.empty() || task.platform().submit_script.empty()) {
    task.fail("platform '" + task.platform().scheduler +
              "' needs the parameters submit and submit_script (its executeset)");
    return ended(task);
  }
  JobRequest request;
  request.name = job_name(id);
  request.directory = task.work_dir();
  request.script = task.platform().submit_script;
  request.submit = task.platform().submit;
  request.environment = task.process_environment(task.work_dir());
  package.job_name = request.name;
  std::string rejected;
  if (Status s = jobs_.submit(id, request, status_file(task), &rejected); !s) return s;
  if (rejected.empty()) return Status::ok();
  task.fail(rejected);
  return ended(task);
}

Status Engine::take_job_ends() {
  for (const JobEnd& end : jobs_.poll()) {
    if (Status s = job_ended(end); !s) return s;
  }
  return Status::ok();
}

Status Engine::job_ended(const JobEnd& end) {
  Task& task = *tasks_.at(end.package);
  if (!end.known) {
    task.end(State::lost, "the scheduler no longer knows the job and it left no exit status" +
                              (end.reason.empty() ? std::string() : " (" + end.reason + ")"));
  } else if (end.exit_code == 0) {
    task.end(State::done, {});
  } else {
    std::string outcome = outcome_of(end.exit_code);
    if (end.exit_code < 0 && end.reason.rfind("TIMEOUT", 0) == 0) outcome = "timeout";
    if (end.exit_code < 0 && end.reason.rfind("OUT_OF_MEMORY", 0) == 0) outcome = "oom";
    if (is_expected(task.step(), outcome, task.values().lookup())) {
      task.end(State::expected, outcome == "oom"       ? "out of memory"
                                : outcome == "timeout" ? "time limit"
                                                       : "check failed");
    } else if (end.exit_code < 0) {
      task.fail("the job ended without an exit status: " + end.reason);
    } else {
      task.fail("the job's program ended with exit code " + std::to_string(end.exit_code) +
                "; its output is in \"" + task.work_dir() + "\"");
    }
  }
  return ended(task);
}

}  // namespace tally
