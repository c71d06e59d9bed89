// Runs one workpackage: file sets, substitutions, operations, cycles. A task is a state machine
// that the engine's loop drives. It never blocks between two processes.
// task.cc has its phases, task_operations.cc its commands, task_outputs.cc what they leave,
// task_earlier_runs.cc what earlier runs left.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/base/digest.h"
#include "engine/execute/run_context.h"
#include "engine/workspace/work_directory.h"

namespace tally {

class Task {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Next {
    process,  // the process pid() runs
    shared,   // at a shared operation; the engine gathers the siblings
    job,      // the operations are done; the job script must be submitted
    ended,    // see ended()
  };

  Task(RunContext& context, int id);

  int id() const { return id_; }
  int graph_step() const { return workpackage().wp.step; }
  int pid() const { return pid_; }
  // How it ended, until the graph takes it (WorkpackageGraph::transition()): the workpackage's
  // state is there alone. Null: it works. The outcome has its place: the last command, the program
  // of its job, or else the step.
  const Outcome* ended() const { return end_ ? &*end_ : nullptr; }
  Outcome take_end() { return std::exchange(end_, std::nullopt).value_or(Outcome()); }
  const Step& step() const { return step_; }
  const WorkpackageValues& values() const { return *values_; }
  const std::string& work_dir() const { return work_dir_; }
  const Platform& platform() const { return platform_; }

  // Makes the folder, its links and the environment. A failure ends the workpackage; advance()
  // reports it.
  void prepare_folder();
  std::string shared_folder() const;
  // Proceeds until there is something to wait for. An error status means that the journal failed,
  // which ends the run.
  Status advance(Next* next);
  // Called when the process ended. Call advance() next.
  Status process_ended(const ProcessResult& result);

  // The shared operation that the task has reached.
  std::pair<int, int> shared_operation() const { return {cycle(), static_cast<int>(operation_)}; }
  // Lets this task run the shared operation. The operation is then handled like any process.
  void run_shared() { shared_now_ = true; }
  // Called when another workpackage has run the operation. Proceeds to the next operation.
  Status shared_done();

  void fail(Reason reason, std::string detail);
  // Fails, unless the error is a state of this host that may pass. It is then put off: `continue`
  // tries again.
  void fail(Reason reason, const Status& status);
  // The host cannot say what it must know.
  void put_off(const Status& why);
  void end(Outcome outcome);
  // Writes to the journal which operations are done, for a resumed run.
  Status write_progress() const;
  // Ends its process because its time limit is reached.
  void time_out();
  std::optional<Clock::time_point> deadline() const { return deadline_; }
  // The GPUs assigned to it, for CUDA_VISIBLE_DEVICES.
  void set_gpus(const std::vector<std::string>& gpus);
  // The environment changes that its operations made, for the journal and for children.
  const EnvironmentChanges& environment() const { return environment_; }
  // The changes without the variables of `env` that refer to others or that others refer to, for a
  // script that sets these.
  EnvironmentChanges environment_for_script() const;
  // These without what `env` sets, unless a command has set it since.
  EnvironmentChanges environment_beside_env() const;
  // Called when another workpackage did the same work. Takes over the environment changes of that
  // work.
  void take_environment_of(const EnvironmentChanges& other) { environment_ = other; }
  // The environment that the step's changes are relative to.
  const Environment& base() const;
  std::vector<std::string> process_environment(const std::string& directory) const;
  // The entries among which the secrets of its environment and its parameters are.
  std::vector<std::string> secrets() const;
  // The files its operations wrote to, absolute.
  const std::vector<std::string>& outputs() const { return outputs_; }
  // The sizes of those in a work_dir outside its own folder, before its first operation.
  const OutputSizes& sizes_before() const { return before_; }
  // Copies what its operations added to these files to the folder of a failed attempt.
  void keep_outputs(const std::string& folder) const;
  // Makes files outside the run to which its substitutions appended what they were before this
  // attempt. The text that it added is copied to the folder.
  void set_back_appended(const std::string& folder) const;
  // The files that its file sets have put somewhere in this attempt, absolute.
  const std::set<std::string>& placed() const { return placed_; }

 private:
  enum class Phase { files, operations, finished };
  struct Running {
    std::string command, directory, stderr_path, capture;
    bool prepare = false;
    bool sets_env = false;  // the command itself sets the variables of `env`
  };

  int cycle() const;
  WorkpackageNode& workpackage() const { return context_.graph[id_]; }
  std::vector<std::string> own_outputs() const;
  Status note_outputs_before();
  Status note_outside_files();
  bool shares_work_dir() const;
  Status cut_back_outputs();
  void keep_tails(const OutputSizes& sizes, const std::string& folder) const;
  void keep_tail(const std::string& path, long long size, const std::string& folder) const;
  Status cut_back_shared(const std::vector<std::string>& written) const;
  std::string output_path(const std::string& name, const char* otherwise, bool shared) const;
  void start_environment();
  // The changes by parents and granted GPUs; those by the step itself, after them.
  EnvironmentChanges inherited() const;
  EnvironmentChanges declared(const EnvironmentChanges& inherited) const;
  // Each returns whether it reached a point at which the task must wait.
  bool advance_files();
  Status make_substituted_files();
  Status put(const PlannedFile& file);
  bool advance_operations(Next* next, Status* status);
  bool next_cycle(Status* status);
  bool run_prepare(const Prepare& prepare);
  Variables variables() const;
  bool run_operation(const Operation& operation);
  // The owner of a file outside the run. A file that is not there, or not outside, is its own.
  enum class Origin {
    own,
    attempt,   // an earlier attempt of the workpackage made or changed it last
    ancestor,  // a workpackage that it depends on did
    before,    // an earlier run, another workpackage or somebody else did
  };
  // Until when a file may be an ancestor's. One that its ancestors started may outlive them.
  enum class Until { own_begin, end_of_ancestor };
  Origin origin_of(const std::string& file, Until until) const;
  Origin origin_of_mark(const std::string& file) const;
  bool is_of_ancestor(long long made_ns, Until until) const;
  std::vector<int> ancestors() const;
  bool finds_earlier_done_file(const std::string& file);
  void put_off_for(const char* key, const std::string& file);
  bool finds_marks_before_commands();
  bool finds_earlier_marks(const Operation& operation);
  bool guards_outside_files() const;
  bool is_outside_run(const std::string& file) const;
  enum class Outputs { named_outside, led_outside };
  std::vector<std::string> appended_files() const;
  bool appends_to_earlier_file(Outputs which);
  bool is_foreign(const std::string& file) const;
  Status look_at_appended(const std::string& file);
  Status look_before_prepare();
  bool has_bytes_from_before(const std::string& file);
  bool is_of_another(const std::string& file);
  bool begin_counts() const;
  Status note_begin();
  std::string path_of(const Operation& operation, const Text& name) const;
  static std::string path_of(const Text& name, const Text& folder, const WorkpackageValues& values,
                             const std::string& base);
  bool run(const std::string& command, const std::string& directory, const std::string& out,
           const std::string& err, bool capture);
  bool is_active(const Text& active, bool* active_now);
  bool more_to_come() const;
  Status operation_ended(const Operation& operation);
  // Whether the file of an operation is there. An empty name: no.
  Status finds(const Operation& operation, const Text& name, bool* found) const;
  void wait_for_done_file(const Operation& operation, Origin there);
  Status record_operation();
  Status record_progress();
  bool note_output_sizes();
  Status take_environment(int exit_status);
  bool make_capture_file();
  void write_do_log(const std::string& command, const std::string& directory);
  Outcome failure_of_process(const ProcessResult& result) const;

  RunContext& context_;
  int id_;
  const Step& step_;
  std::unique_ptr<WorkpackageValues> values_;
  std::string folder_, work_dir_;  // absolute
  // The folder for standard output and error of its operations, unless they name files. For a run
  // step it is the workpackage's own folder, because workpackages may share a work_dir.
  std::string output_dir_;
  std::vector<std::string> sets_;
  std::vector<Operation> operations_;
  Platform platform_;
  int cycles_ = 1;
  Phase phase_ = Phase::files;
  size_t set_ = 0, entry_ = 0;
  size_t operation_ = 0;
  struct Found {
    std::string real;  // without links
    FileStamp stamp;
    std::string digest;
    bool foreign = false;
  };
  // Files outside the run to which its substitutions append, as they were before one of its file
  // sets' commands could reach them. Without a stamp: not there, or its own.
  std::map<std::string, Found> appended_;
  std::set<std::string> placed_;
  bool anything_prepared_ = false;
  bool check_waiting_ = false;  // its command has run before; only its done_file is checked
  bool shared_now_ = false;
  bool marks_sought_ = false;  // those that end the work before it begins
  bool stop_operations_ = false;
  bool outside_noted_ = false;
  // When this attempt began, and the first one that this engine knows, by the clock of file times.
  // 0: not known, or not needed.
  long long begun_ns_ = 0, first_begun_ns_ = 0;
  EnvironmentChanges environment_;
  std::string gpus_;
  std::vector<std::string> outputs_;  // files its operations wrote to, absolute
  OutputSizes before_;
  std::optional<Clock::time_point> deadline_;
  bool timed_out_ = false;
  std::string timeout_text_;
  std::string do_log_directory_;
  Running running_;
  int pid_ = 0;
  std::optional<Outcome> end_;
  Mark place_;  // its place in the user's file
};

// The running tasks by workpackage, from start to end.
using Tasks = std::unordered_map<int, std::unique_ptr<Task>>;

}  // namespace tally
