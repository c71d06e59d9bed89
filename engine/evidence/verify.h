// `tally verify`: whether an archive is what was written, and whether its tables follow from what
// it holds. Without `compute` nothing is executed that the archive names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/evidence/container.h"
#include "engine/evidence/witness.h"
#include "engine/run/settings.h"

namespace tally {

struct ArchivedRun {
  std::string folder, benchmark;  // "runs/000003"
  int id = 0;
  size_t tables = 0, samples = 0;  // made again
};

struct Verification {
  size_t members = 0;
  std::vector<ArchivedRun> runs;
  std::string program;                                        // "tally 0.3.0": that made it
  std::vector<std::pair<std::string, std::string>> programs;  // path, SHA-256
  std::vector<LossWitness> witnesses;                         // of the records that have one
  std::vector<Fault> faults;
};

// Unpacks the archive below `folder`, which exists and is empty. `compute`: what Python, Perl and
// shells computed for tables is computed again, which executes it. An error: the file is no archive,
// or cannot be read.
Status verify_archive(const Settings& settings, const std::string& file, const std::string& folder,
                      bool compute, Verification* out);

}  // namespace tally
