// The authoritative record of a run: one SQLite database in the run directory. A state is recorded
// before anything relies on it, so that a run can resume after its engine was killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/expand/point.h"
#include "engine/journal/database.h"
#include "engine/journal/lease.h"
#include "engine/journal/outcome_columns.h"
#include "engine/workpackage/ended_file.h"
#include "engine/workpackage/measured.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// The settings that the run was started with.
struct RunRecord {
  int id = 0;
  std::string benchmark;  // name
  std::string comment;
  std::vector<std::string> tags;
  std::string input_file;  // as given; the texts of the file and of its includes are stored too
  std::string start;       // 2026-11-21T01:18:53
  std::string change;      // time of the last change
  std::string version;     // Tally's version
  std::string home;        // directory of the input file
  std::vector<std::pair<std::string, std::string>> set;  // --set
  std::vector<std::string> include_path;  // folders that are searched for included files
  // The directory in which the run was started: absolute, and relative to the run's folder.
  // Relative paths of the input are resolved there. The relative form still works when a suite was
  // moved with its runs.
  std::string directory, directory_from_run;
  // Plain YAML values of its input are texts as they are written. False in a run that an earlier
  // version began (engine/check: PlainText).
  bool plain_as_written = true;
};

// Output files' sizes in bytes, by absolute path. A path that is there twice has its size before
// the first operation, and then its current size.
using OutputSizes = std::vector<std::pair<std::string, long long>>;

// One database in WAL mode under an exclusive lock. This needs no shared memory, so it is safe on
// NFS, Lustre and GPFS. A commit costs no disk flush, yet survives a kill of the engine.
//
// Only one engine at a time opens it for writing. The database's lock and a lease file with host
// and pid enforce this. Anyone may open it for reading. Readers get the snapshot that a writing
// engine leaves about once a second.
//
// Every method that changes something has committed when it returns, except between begin() and
// commit(). Not thread-safe.
//
// Files in the run's folder: journal.sqlite (and journal.sqlite-wal while it is written), the
// snapshot for readers (journal.snapshot) and the lease of the engine that writes (journal.lease).
//
// journal.cc opens and closes it; journal_write.cc and journal_read.cc are for workpackages;
// journal_machine.cc for machines, sessions, disturbances and jobs; journal_analysed.cc for what
// results read. Below them: database (SQLite), page_sums (checksums of pages), tables (the schema),
// outcome_columns (an outcome as columns), lease, journal_files (names, packed lists, atomic
// copies).
class Journal {
 public:
  static Status create(const std::string& run_dir, const RunRecord& run, const Sources& sources,
                       std::unique_ptr<Journal>* out);
  // Fails with "run 000003 is in use by tally on host X, process 123, since ..." when another
  // engine holds it. The lease of a dead process of this host is taken over.
  static Status open(const std::string& run_dir, std::unique_ptr<Journal>* out);
  // Works while an engine writes, and in a directory without write permission. Changes nothing
  // there.
  static Status open_read_only(const std::string& run_dir, std::unique_ptr<Journal>* out);
  ~Journal() { close(); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  const RunRecord& run() const { return run_; }
  using Texts = std::vector<std::pair<std::string, std::string>>;  // path, text
  Status sources(Texts* out) const;
  // Replaces the record of the run (`tally comment`, `analyse -u`).
  Status set_run(const RunRecord& run);
  // The input that `analyse -u` gave for the results, in place of the run's own.
  struct Update {
    std::string file;               // as it was given; empty: there is none
    std::vector<std::string> tags;  // with which it is read
    Texts texts;                    // of the file and of all its includes
  };
  Status set_update(const Update& update);
  // An update of an earlier version has the run's tags.
  Status update(Update* out) const;

  // All changes between them are one transaction, whoever calls begin() within it.
  Status begin();
  Status commit();
  // Makes the changes one transaction, or a part of the one that is open. An error takes back those
  // of a transaction of their own.
  Status transaction(const std::function<Status()>& changes);
  // The texts that a new workpackage is stored with.
  struct NewWorkpackage {
    std::vector<std::string> definitions;  // Expander::definition_key() of each binding
    std::string step;
    std::string directory;  // the name of its folder in the run directory
    // The absolute path of the folder in which its operations run, if that is not directory/work.
    std::string work_dir;
  };
  // Adds a new workpackage with its parameters and parents in one transaction.
  Status add(const Workpackage& workpackage, const TextPool& pool, const NewWorkpackage& with);
  // Sets the state of a workpackage and the reason for it.
  Status set_outcome(int workpackage, const Outcome& outcome);
  // Sets the files that the places of outcomes refer to by number. Without them places are not
  // stored.
  void name_places(const Sources* sources) { places_ = sources; }
  // Replaces the values of parameters that a cycle changed.
  Status set_parameters(const Workpackage& workpackage, const TextPool& pool,
                        const std::vector<std::string>& definitions);
  // Records that operation `operation` of cycle `cycle` succeeded (-1: file sets and substitutions
  // are in place). `environment` is the change that the next operation inherits: "NAME=value" for a
  // variable that differs from the engine's own, "NAME" for one that was removed.
  Status operation_done(int workpackage, int cycle, int operation,
                        const std::vector<std::string>& environment, const OutputSizes& outputs);
  // Records the sizes that its output files had before its first operation, for those outside its
  // own folder. operation_done() replaces them.
  Status outputs_before(int workpackage, const OutputSizes& outputs);
  // Records a process that an operation of the workpackage started. It is the leader of a session.
  struct Process {
    int workpackage = 0, pid = 0;
    std::string start;  // tells it from other processes with this id; start_mark() of left_behind.h
  };
  Status process_started(const Process& process);
  // The processes of workpackages that are recorded as running. Most of them have ended.
  Status processes(std::vector<Process>* out) const;
  // Lets only the user read the journal and its snapshot: it holds a secret. (It does so
  // by itself when an environment has one.)
  Status keep_private();
  // Clears the record of a workpackage's work so that it runs again (`remove -w`, a retry).
  Status reset(int workpackage);
  Status remove(int workpackage);
  // Records the names of jobs, by workpackage, before the jobs are submitted. One disk flush covers
  // all names, because a crash of the node must not lose a job. A name clears the previous id. An
  // empty name says that there is no job any more.
  Status jobs_named(const std::vector<std::pair<int, std::string>>& names);
  // Records the id of a submitted job. A lost id is found again by the job's name.
  Status job_submitted(int workpackage, const std::string& job_id);
  // The work of a setup or build step: its inputs and its instance (see Lineage).
  struct Setup {
    int workpackage = 0;
    std::string hash, instance;
  };
  Status set_setup(const Setup& setup);
  Status setups(std::vector<Setup>* out) const;

  // Records what disturbed a workpackage while it ran on this machine. reset() and remove() clear
  // it.
  Status set_disturbance(int workpackage, const Disturbance& disturbance);
  // Reads them by workpackage. Workpackages that nothing disturbed, or that were not watched, are
  // missing.
  Status disturbances(std::map<int, Disturbance>* all) const;
  // Adds what is known of a workpackage's job. Values that `use` lacks are kept. reset() and
  // remove() clear it.
  Status set_job_use(int workpackage, const JobUse& use);
  // Reads them by workpackage.
  Status job_uses(std::map<int, JobUse>* all) const;
  // Samples of repeats. A sample replaces an earlier one of the same workpackage, analyser, pattern
  // and definition. reset() and remove() clear those of a workpackage.
  Status set_samples(const std::vector<Sample>& samples);
  // Takes them by workpackage.
  Status each_sample(const std::function<void(const Sample& sample)>& take) const;
  Status has_samples(bool* has) const;
  // The files outside the run's folder that results read, before and after a workpackage. Replaces
  // what is known for the workpackage. reset() and remove() clear it.
  Status set_outside(int workpackage, const OutsideFiles& files);
  Status outside_of(int workpackage, OutsideFiles* files) const;
  // Takes them by workpackage.
  Status each_outside(
      const std::function<void(int workpackage, const OutsideFile& file)>& take) const;
  // Replaces what is known of a workpackage's end (Stored::ended_files). reset() and remove() clear
  // it.
  Status set_ended(int workpackage, const EndedFiles& ended);
  // When the run's first workpackage began, in seconds since 1970; 0: none has.
  Status first_start(double* seconds) const;
  // The facts known of the machine and its software, one list a session: the first when the run was
  // started, and one for each `continue`.
  using Facts = std::vector<std::pair<std::string, std::string>>;  // name, value
  Status add_session(const Facts& facts);
  // Adds to the last session.
  Status add_fact(const std::string& name, const std::string& value);
  Status sessions(std::vector<Facts>* out) const;

  // Records that an engine has come to the end of its work on the run, whatever that has come to.
  Status note_end();
  // Whether one has. A run without workpackages has then ended with none.
  Status has_end(bool* has) const;

  // Renews the lease and leaves what readers do not have yet, when either is due. While nothing is
  // committed, call it at least every half minute and at next_snapshot().
  void heartbeat();
  // Leaves readers what was committed until now, for programs that look at the run before it is
  // closed.
  void publish();
  // Renews the lease. If another process has taken it, all writing ends. heartbeat() calls it four
  // times a minute.
  void renew_lease() { lost_ = lost_ || !lease_.renew(); }
  // When readers are to get what was committed since the last snapshot. None: they have all.
  std::optional<std::chrono::steady_clock::time_point> next_snapshot() const;
  // For fault tests: called around every commit with its number, before it (`done` false) and after
  // it.
  void on_commit(std::function<void(int number, bool done)> hook) { hook_ = std::move(hook); }

  struct Stored {
    // Its bindings are not filled, because names depend on a TextPool; see `parameters`. The place
    // of its outcome is not filled either, because it refers to files by number.
    Workpackage workpackage;
    std::string place;  // of the outcome: "bench.yaml:12:5"; empty: unknown
    std::string step;
    std::string directory, work_dir;  // as given to add()
    std::vector<std::pair<std::string, std::string>> parameters;
    std::vector<std::string> definitions;  // for Expander::restore(), parallel to parameters
    int operations_done = 0;               // of the current cycle
    std::string job_id;
    double started = 0;  // seconds since 1970; 0: not started
    // Not in each_workpackage(), and neither is workpackage.step.
    std::vector<uint32_t> index;  // index of each binding, parallel to parameters
    bool prepared = false;        // file sets and substitutions are in place
    std::vector<std::string> environment;
    OutputSizes outputs;
    std::string job_name;
    double ended = 0;  // seconds since 1970; 0: not ended
    // EndedFiles::packed(); empty: unknown. In each_workpackage() alone, until its call ends.
    std::string_view ended_files;
  };
  // All workpackages, by id. On an error status `out` is incomplete.
  Status workpackages(std::vector<Stored>* out) const;
  // Calls `take` with what results need of each workpackage: a list of a hundred thousand takes
  // much memory.
  Status each_workpackage(const std::function<void(Stored& stored)>& take) const;
  // Only the workpackages that have a job name.
  Status with_jobs(std::vector<Stored>* out) const;
  // Only the states, by id. `status` needs no more, and this avoids reading the parameter lists of
  // up to a hundred thousand workpackages.
  struct Tally {
    std::string step;
    State state = State::pending;
    int count = 0;
  };
  Status states(std::vector<Tally>* out) const;
  // How many workpackages there are, which takes much less time than states().
  Status count(size_t* workpackages) const;
  // Writes a database with the same rows, on pages of its own. There must be no file yet.
  Status copy_to(const std::string& path) const;
  // The run's folder before it came into an archive, absolute: values name it. Empty: the run is
  // where its journal is (archived_copy.h).
  Status archived_from(std::string* run_dir) const;

 private:
  using Clock = std::chrono::steady_clock;
  Journal() = default;
  Status start_create(const std::string& run_dir, const RunRecord& run, const Sources& sources);
  Status start_open(const std::string& run_dir);
  Status start_read(const std::string& run_dir);
  Status lock_and_configure(const std::string& run_dir);
  static Status is_there(const std::string& run_dir, int mode);
  void begin_to_write();
  Status check_pages();
  Status open_snapshot_or_main(const std::string& run_dir);
  Status check_version();
  FilePlace place_of(const Mark& mark) const;
  Status prepare_statements();
  enum class For { work, results };  // what Stored has of each: see there
  Status select(const std::string& where, For purpose,
                const std::function<void(Stored&)>& take) const;
  bool holds_run();
  Status taken_over() const;
  Status change_and_forget(Statement& statement, int workpackage);
  Status forget(const char* table, int workpackage);
  Status select_outside(
      const std::string& where,
      const std::function<void(int workpackage, const OutsideFile& file)>& take) const;
  Status change(Statement& statement);
  Status committed();
  void write_snapshot();
  void close();

  std::string run_dir_;
  std::string private_copy_;  // folder of a reader's private copy, removed at the end
  bool writable_ = false;
  mutable SqliteDatabase database_;
  Lease lease_;
  bool private_ = false;
  bool lost_ = false;  // another process has taken the lease
  RunRecord run_;
  const Sources* places_ = nullptr;  // the files that marks number
  Statement begin_, commit_, add_, outcome_, parameters_, operation_, outputs_, reset_, remove_,
      job_name_, job_id_, set_setup_, process_, ended_;
  bool in_transaction_ = false;
  int commits_ = 0;
  int commits_of_snapshot_ = 0;  // that the last snapshot has
  std::function<void(int, bool)> hook_;
  Clock::time_point next_snapshot_ = Clock::now() + std::chrono::milliseconds(500);
  Clock::time_point next_renewal_ = Clock::now() + std::chrono::seconds(15);
};

// For code that lists or removes runs: whether a folder has journal files.
bool has_journal(const std::string& run_dir);
// "run 000003 is in use by tally on host X, ..." while an engine holds the run. Otherwise nothing.
std::optional<std::string> run_holder(const std::string& run_dir);

}  // namespace tally
