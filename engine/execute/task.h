// One workpackage being carried out: file sets, substitutions, operations, cycles. A state machine
// that the engine's loop drives; between two processes it never waits.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/execute/files/work_directory.h"
#include "engine/execute/run_context.h"

namespace tally {

class Task {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Next {
    process,  // pid() runs
    shared,   // stands before a shared operation, for which the engine gathers the siblings
    job,      // the operations are done, the job script is to be submitted
    ended,    // see outcome()
  };

  Task(RunContext& context, int id);

  int id() const { return id_; }
  int graph_step() const { return workpackage().wp.step; }
  int pid() const { return pid_; }
  State state() const { return outcome_.state; }
  // Its place is known when it ended: the command it was at, its job's program, else the step.
  const Outcome& outcome() const { return outcome_; }
  const Step& step() const { return step_; }
  const WorkpackageValues& values() const { return *values_; }
  const std::string& work_dir() const { return work_dir_; }
  const Platform& platform() const { return platform_; }

  // Makes the folder, its links and the environment. A failure ends the workpackage, seen by advance().
  void prepare_folder();
  std::string shared_folder() const;
  // Goes on until there is something to wait for. A status is a failure of the journal: the run's
  // end.
  Status advance(Next* next);
  // The process ended; then advance().
  Status process_ended(const ProcessResult& result);

  // Which shared operation it stands before.
  std::pair<int, int> shared_operation() const { return {cycle(), static_cast<int>(operation_)}; }
  // Runs the shared operation in this workpackage's name; then as with any process.
  void run_shared() { shared_now_ = true; }
  // Another workpackage has run it: passes on to the next operation.
  Status shared_done();

  void fail(Reason reason, std::string detail);
  void end(Outcome outcome);
  // Ends its process because its time is over.
  void time_out();
  std::optional<Clock::time_point> deadline() const { return deadline_; }
  // GPUs it was given, for CUDA_VISIBLE_DEVICES.
  void set_gpus(const std::vector<std::string>& gpus);
  // What its operations leave, for the journal and for children.
  const EnvironmentChanges& environment() const { return environment_; }
  // Another workpackage has done its work: its environment is what the work leaves.
  void take_environment_of(const EnvironmentChanges& other) { environment_ = other; }
  // The environment that a step's own changes are changes of.
  const Environment& base() const;
  std::vector<std::string> process_environment(const std::string& directory) const;
  OutputSizes sizes() const { return output_sizes(outputs_); }

 private:
  enum class Phase { files, operations, finished };
  struct Running {
    std::string command, directory, stderr_path, capture;
    bool prepare = false;
  };

  int cycle() const;
  WorkpackageNode& workpackage() const { return context_.graph[id_]; }
  void cut_back_outputs();
  void start_environment();
  // Each says whether it came to a point to wait at.
  bool advance_files();
  bool advance_operations(Next* next, Status* status);
  bool next_cycle(Status* status);
  bool run_prepare(const Prepare& prepare);
  Variables variables() const;
  bool run_operation(const Operation& operation);
  bool run(const std::string& command, const std::string& directory, const std::string& out,
           const std::string& err, bool capture);
  bool is_active(const Text& active, bool* active_now);
  bool more_to_come() const;
  Status operation_ended(const Operation& operation);
  Status record_operation();
  void take_environment();
  void write_do_log(const std::string& command, const std::string& directory);
  Outcome failure_of_process(const ProcessResult& result) const;

  RunContext& context_;
  int id_;
  const Step& step_;
  std::unique_ptr<WorkpackageValues> values_;
  std::string folder_, work_dir_;  // absolute
  // Where its operations write standard output and error, unless they name files: of a run step its
  // own folder, for workpackages may share a work_dir.
  std::string output_dir_;
  std::vector<std::string> sets_;
  std::vector<Operation> operations_;
  Platform platform_;
  int cycles_ = 1;
  Phase phase_ = Phase::files;
  size_t set_ = 0, entry_ = 0;
  size_t operation_ = 0;
  bool anything_prepared_ = false;
  bool check_waiting_ = false;  // its command has run before; only its done_file is asked for
  bool shared_now_ = false;
  bool stop_operations_ = false;
  EnvironmentChanges environment_;
  std::vector<std::string> outputs_;  // files its operations wrote to, absolute
  std::optional<Clock::time_point> deadline_;
  bool timed_out_ = false;
  std::string timeout_text_;
  std::string do_log_directory_;
  Running running_;
  int pid_ = 0;
  Outcome outcome_ = in_state(State::running);
  Mark place_;  // what it is at in the user's file
};

// The tasks of a run, by workpackage: from its start to its end.
using Tasks = std::unordered_map<int, std::unique_ptr<Task>>;

}  // namespace tally
