// One workpackage being carried out: file sets, substitutions, operations, cycles. A state machine
// that the engine's loop drives; between two processes it never waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "engine/execute/execute.h"
#include "engine/execute/graph.h"
#include "engine/execute/run_log.h"
#include "engine/execute/work_directory.h"
#include "steps/kinds.h"

namespace tally {

// What all tasks of a run use.
struct TaskContext {
  const Benchmark& benchmark;
  PackageGraph& graph;
  Expander& expander;
  TextPool& pool;
  Journal& journal;
  Evaluator& evaluator;
  ProcessRunner& processes;
  const RunOptions& options;
  Environment base;     // the engine's own environment
  std::string run_dir;  // absolute
  RunLog& log;
};

// The note of a package that waits until its siblings come to a shared operation, in a run that
// ended before they did: it is taken up again where it is.
inline constexpr const char* before_shared = "stands before a shared command";

// How the notes of packages begin that a command failed, see is_failure_of_command().
inline constexpr const char* command_failed = "Error (returncode <> 0)";
inline constexpr const char* error_file_found = "Error file ";
inline constexpr const char* shared_failed = "shared operation failed";

// "oom" as people say it: "out of memory"; empty for what is no outcome.
const char* plain_words(const std::string& outcome);

class Task {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Next {
    process,  // pid() runs
    shared,   // stands before a shared operation, for which the engine gathers the siblings
    job,      // the operations are done, the job script is to be submitted
    ended,    // see state() and note()
  };

  Task(TaskContext& context, int id);

  int id() const { return id_; }
  int graph_step() const { return package().wp.step; }
  int pid() const { return pid_; }
  State state() const { return state_; }
  const std::string& note() const { return note_; }
  // What it is at in the user's file: a command, a job's program, else the step.
  const Mark& place() const { return place_; }
  const Step& step() const { return step_; }
  const PackageValues& values() const { return *values_; }
  const std::string& work_dir() const { return work_dir_; }
  const Platform& platform() const { return platform_; }

  // Makes the folder, its links and the environment. A failure ends the package, seen by advance().
  void prepare_folder();
  std::string shared_folder() const;
  // Goes on until there is something to wait for. A status is a failure of the journal: the run's
  // end.
  Status advance(Next* next);
  // The process ended; then advance().
  Status process_ended(const ProcessResult& result);

  // Which shared operation it stands before.
  std::pair<int, int> shared_operation() const { return {cycle(), static_cast<int>(operation_)}; }
  // Runs the shared operation in this package's name; then as with any process.
  void run_shared() { shared_now_ = true; }
  // Another package has run it: passes on to the next operation.
  Status shared_done();

  void fail(std::string note);
  void end(State state, std::string note);
  // Ends its process because its time is over.
  void time_out();
  std::optional<Clock::time_point> deadline() const { return deadline_; }
  // GPUs it was given, for CUDA_VISIBLE_DEVICES.
  void set_gpus(const std::vector<std::string>& gpus);
  // What its operations leave, for the journal and for children.
  const EnvironmentChanges& environment() const { return environment_; }
  std::vector<std::string> process_environment(const std::string& directory) const;
  OutputSizes sizes() const { return output_sizes(outputs_); }
  // What a setup or build step's result depends on.
  Status inputs(StepInputs* inputs);

 private:
  enum class Phase { files, operations, finished };
  struct Running {
    std::string command, directory, stderr_path, capture;
    bool prepare = false;
  };

  int cycle() const;
  Package& package() const { return context_.graph[id_]; }
  void start_environment();
  // Each says whether it came to a point to wait at.
  bool advance_files();
  bool advance_operations(Next* next, Status* status);
  bool next_cycle(Status* status);
  bool run_prepare(const Prepare& prepare);
  bool run_operation(const Operation& operation);
  bool run(const std::string& command, const std::string& directory, const std::string& out,
           const std::string& err, bool capture);
  bool is_active(const Text& active, bool* active_now);
  bool more_to_come() const;
  Status operation_ended(const Operation& operation);
  Status record_operation();
  void take_environment();
  void write_do_log(const std::string& command, const std::string& directory);
  std::string error_message(const ProcessResult& result) const;

  TaskContext& context_;
  int id_;
  const Step& step_;
  std::unique_ptr<PackageValues> values_;
  std::string folder_, work_dir_;  // absolute
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
  State state_ = State::running;
  std::string note_;
  Mark place_;
};

}  // namespace tally
