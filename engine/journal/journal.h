// The truth about a run: one SQLite database in the run directory. A state is recorded before anything
// relies on it, so that a killed engine can go on where it was.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/mark.h"
#include "engine/base/status.h"
#include "engine/expand/point.h"
#include "engine/plan/workpackage.h"

namespace tally {

// What the run was started with.
struct RunRecord {
  int id = 0;
  std::string benchmark;           // name
  std::string comment;
  std::vector<std::string> tags;
  std::string input_file;          // as given; its text and that of every include is stored beside it
  std::string start;               // 2026-11-21T01:18:53
  std::string change;              // of the last change
  std::string version;             // tally's
  std::string home;                // directory of the input file
  std::vector<std::pair<std::string, std::string>> set;  // --set
};

// Opened for writing by one engine at a time (a lease naming host and pid), for reading by anyone.
// Safe on file systems without shared memory maps (NFS, Lustre, GPFS). Every method that changes
// something has committed when it returns, except between begin() and commit().
class Journal {
 public:
  static Status create(const std::string& run_dir, const RunRecord& run, const Sources& sources,
                       std::unique_ptr<Journal>* out);
  // Fails with "run 000003 is in use by tally on host X, process 123, since ..." when another engine
  // holds it.
  static Status open(const std::string& run_dir, std::unique_ptr<Journal>* out);
  static Status open_read_only(const std::string& run_dir, std::unique_ptr<Journal>* out);
  virtual ~Journal() = default;

  virtual const RunRecord& run() const = 0;
  virtual std::vector<std::pair<std::string, std::string>> sources() const = 0;  // path, text

  virtual Status begin() = 0;
  virtual Status commit() = 0;
  // A new workpackage with its parameters, its parents, all at once.
  virtual Status add(const WorkPackage& package, const TextPool& pool,
                     const std::vector<std::string>& definitions) = 0;
  virtual Status set_state(int package, State state, const std::string& note) = 0;
  // Operation `operation` of cycle `cycle` ended well; `environment` is what it leaves to the next.
  virtual Status operation_done(int package, int cycle, int operation,
                                const std::vector<std::string>& environment) = 0;
  // Before and after a job is submitted: the name it will have, then the id it got.
  virtual Status job_named(int package, const std::string& job_name) = 0;
  virtual Status job_submitted(int package, const std::string& job_id) = 0;

  struct Stored {
    WorkPackage package;
    std::string step;
    std::vector<std::pair<std::string, std::string>> parameters;
    int operations_done = 0;
    std::vector<std::string> environment;
    std::string job_name, job_id;
  };
  virtual std::vector<Stored> packages() const = 0;
};

}  // namespace tally
