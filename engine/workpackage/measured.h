// Facts of a workpackage that the journal keeps beside its outcome.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/compact.h"
#include "engine/base/digest.h"

namespace tally {

// A workpackage's output for one pattern: one value of a sample of repeats.
struct Sample {
  int workpackage = 0;
  std::string analyser, pattern;
  // The definition that finds the values (definition_of()): a workflow may give the pattern another
  // text later.
  std::string definition;
  std::string value;   // of the first match, for people who read the journal
  std::string packed;  // all statistics of its matches: Statistics::packed()
};

// The disturbance that made a measurement on this machine slower than it should be.
struct Disturbance {
  double cores = 0;     // that other programs used on average; 0: not enough to matter
  RareText gpu_users;   // "GPU 0: process 4711 (python3)": other programs on the same GPUs
  RareText throttling;  // "GPU 0: thermal slowdown"
  bool busy() const { return cores > 0 || !gpu_users.empty(); }
  bool throttled() const { return !throttling.empty(); }
  bool any() const { return busy() || throttled(); }
};

// A scheduler's record of a workpackage's job.
struct JobUse {
  std::string nodes;              // on which it ran: "node[1-4]"; empty: unknown
  std::optional<double> seconds;  // from its start to its end
  std::optional<double> joules;   // of its nodes
  std::optional<double> max_rss;  // MiB: the largest resident memory of one of its tasks
  // Why numbers are missing, a clause. Empty: the job's record is complete, and those that are
  // missing are not measured here.
  std::string why;
};

// A file outside a workpackage's own folder that results read for it. Earlier runs and other
// workpackages may write to it, too.
struct OutsideFile {
  // Absolute, in the journal relative to the run's folder if it is below, so that a run may be
  // moved. A glob (for matching_paths()) stands for all files that it did not match when the
  // workpackage ended.
  std::string path;
  FileStamp before;           // when the workpackage began
  std::string before_digest;  // of all bytes then; empty: there was no file
  bool ended = false;         // the workpackage has, and what follows is known
  // When it ended. Not there: what was last written until `written_ns` may be its own still, as a
  // job's output may arrive later on a network file system.
  FileStamp after;
  long long from = 0;  // it wrote the bytes [from, after.size)
  std::string digest;  // of these; empty: it wrote nothing
  bool untouched() const { return ended && after == before; }
};

using OutsideFiles = std::vector<OutsideFile>;

}  // namespace tally
