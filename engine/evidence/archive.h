// `tally archive`: runs as one file that says by itself what was measured, and how.
//
//   README.txt              what this is, and how it is checked without tally
//   evidence.json           runs, machines, programs and data with their digests, what is left out
//   runs/000003/            journal.sqlite, the files of workpackages that results read, what they
//                           printed, scripts and records, each where it was in the run's folder
//   runs/000003/input/      the workflow and what it includes, as texts
//   runs/000003/samples.csv, tables/   what make_evidence() makes of all that
//   runs/000003/computed.json          values of these tables that Python computed
//   SHA256SUMS              of all other members, for `sha256sum -c`
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"

namespace tally {

// The facts of an archive that a person is told.
struct Archived {
  size_t members = 0;
  long long bytes = 0;
  std::vector<std::string> notes;  // what is not in it
  // The words of `result` beside the tables of a run.
  struct Said {
    const Run* run = nullptr;
    std::string unfinished;
    Diagnostics diagnostics;
  };
  std::vector<Said> said;
};

// Writes the archive, and nothing to the runs' folders. `version`: this program's.
Status write_archive(const Settings& settings, const std::vector<Run>& runs,
                     const std::string& version, const std::string& file, Archived* archived);

}  // namespace tally
