// The truth about a run: one SQLite database in the run directory. A state is recorded before
// anything relies on it, so that a killed engine can go on where it was.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/mark.h"
#include "engine/base/status.h"
#include "engine/expand/point.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// What the run was started with.
struct RunRecord {
  int id = 0;
  std::string benchmark;  // name
  std::string comment;
  std::vector<std::string> tags;
  std::string input_file;  // as given; its text and that of every include is stored beside it
  std::string start;       // 2026-11-21T01:18:53
  std::string change;      // of the last change
  std::string version;     // tally's
  std::string home;        // directory of the input file
  std::vector<std::pair<std::string, std::string>> set;  // --set
  std::vector<std::string> include_path;                 // where included files are looked for
  // Where it was started, absolute, and from the run's folder: relative paths of the input are read
  // from there, also when a suite was moved with its runs.
  std::string directory, directory_from_run;
};

// Output files' sizes in bytes, by absolute path.
using OutputSizes = std::vector<std::pair<std::string, long long>>;

// One database in WAL mode under an exclusive lock: no shared memory, so that it is safe on NFS,
// Lustre and GPFS, and a commit costs no disk flush, yet survives the engine being killed. Opened
// for writing by one engine at a time (the database's lock, and a lease file naming host and pid),
// for reading by anyone: readers get the snapshot that a writing engine leaves every second or so.
// Every method that changes something has committed when it returns, except between begin() and
// commit(). Not thread-safe. Files: journal.sqlite, journal.sqlite-wal, journal.snapshot,
// journal.lease.
class Journal {
 public:
  static Status create(const std::string& run_dir, const RunRecord& run, const Sources& sources,
                       std::unique_ptr<Journal>* out);
  // Fails with "run 000003 is in use by tally on host X, process 123, since ..." when another
  // engine holds it. What a dead process of this host left is taken over.
  static Status open(const std::string& run_dir, std::unique_ptr<Journal>* out);
  // Works beside a writing engine and in a directory that may not be written; changes nothing
  // there.
  static Status open_read_only(const std::string& run_dir, std::unique_ptr<Journal>* out);
  virtual ~Journal() = default;

  virtual const RunRecord& run() const = 0;
  using Texts = std::vector<std::pair<std::string, std::string>>;  // path, text
  virtual Status sources(Texts* out) const = 0;
  // Replaces the record of the run (`tally comment`, `analyse -u`).
  virtual Status set_run(const RunRecord& run) = 0;
  // The input that `analyse -u` gave in the place of the run's own: the file as it was given, the
  // texts of it and of all that it includes. An empty file: none was given.
  virtual Status set_update(const std::string& file, const Sources& sources) = 0;
  virtual Status update(std::string* file, Texts* out) const = 0;

  virtual Status begin() = 0;
  virtual Status commit() = 0;
  // A new workpackage with its parameters, its parents, all at once. `directory`: its folder's name
  // in the run directory. `work_dir`: where its operations run when that is not directory/work;
  // absolute.
  // `definitions`: Expander::definition_key() of each binding.
  virtual Status add(const Workpackage& workpackage, const TextPool& pool,
                     const std::vector<std::string>& definitions, const std::string& step,
                     const std::string& directory, const std::string& work_dir) = 0;
  // The state of a workpackage, and how it came to that.
  virtual Status set_outcome(int workpackage, const Outcome& outcome) = 0;
  // The files that the places of outcomes number. Without them places are not kept.
  virtual void name_places(const Sources* sources) = 0;
  // Parameters that a cycle gave new values.
  virtual Status set_parameters(const Workpackage& workpackage, const TextPool& pool,
                                const std::vector<std::string>& definitions) = 0;
  // Operation `operation` of cycle `cycle` ended well (-1: file sets and substitutions are in
  // place); `environment` is what it leaves to the next: "NAME=value" where it differs from the
  // engine's own, "NAME" where it is gone.
  virtual Status operation_done(int workpackage, int cycle, int operation,
                                const std::vector<std::string>& environment,
                                const OutputSizes& outputs) = 0;
  // Forgets what a workpackage did, for it to be run again (`remove -w`, a retry).
  virtual Status reset(int workpackage) = 0;
  virtual Status remove(int workpackage) = 0;
  // Before jobs are submitted: the names they will have, by workpackage, all in one flush to the disk:
  // a crash of the node must not forget a job. A name forgets the id before it; an empty one says
  // that there is no job any more.
  virtual Status jobs_named(const std::vector<std::pair<int, std::string>>& names) = 0;
  // After: the id it got. One that is lost is found again by the name.
  virtual Status job_submitted(int workpackage, const std::string& job_id) = 0;
  // The work of a setup or build step: what it was made from, and which making of it this is
  // (Lineage).
  struct Setup {
    int workpackage = 0;
    std::string hash, instance;
  };
  virtual Status set_setup(const Setup& setup) = 0;
  virtual Status setups(std::vector<Setup>* out) const = 0;

  // Says that this engine lives; to be called every half minute at least while nothing is
  // committed.
  virtual void heartbeat() = 0;
  // Fault seam: called around every commit with its number, before (`done` false) and after.
  virtual void on_commit(std::function<void(int number, bool done)> hook) = 0;

  struct Stored {
    Workpackage
        workpackage;    // bindings are not filled: names depend on a TextPool; see parameters.
                        // Nor is its outcome's place, which numbers files
    std::string place;  // of the outcome: "bench.yaml:12:5"; empty: not known
    std::string step;
    std::string directory, work_dir;  // as given to add()
    std::vector<std::pair<std::string, std::string>> parameters;
    std::vector<uint32_t> index;           // Binding's, parallel to parameters
    std::vector<std::string> definitions;  // for Expander::restore(), parallel to parameters
    int operations_done = 0;               // of the current cycle
    bool prepared = false;                 // file sets and substitutions are in place
    std::vector<std::string> environment;
    OutputSizes outputs;
    std::string job_name, job_id;
    double started = 0, ended = 0;  // seconds since 1970; 0: not yet
  };
  // All, by id. A status: what is in `out` is not all of it.
  virtual Status workpackages(std::vector<Stored>* out) const = 0;
  // Those alone that have been given a job's name.
  virtual Status with_jobs(std::vector<Stored>* out) const = 0;
  // States alone, by id: what `status` needs, without reading a hundred thousand parameter lists.
  struct Tally {
    std::string step;
    State state = State::pending;
    int count = 0;
  };
  virtual Status states(std::vector<Tally>* out) const = 0;
};

// Names of the journal's files, for those who list or remove a run.
bool has_journal(const std::string& run_dir);
// "run 000003 is in use by tally on host X, ..." while an engine is at it.
std::optional<std::string> run_holder(const std::string& run_dir);

}  // namespace tally
