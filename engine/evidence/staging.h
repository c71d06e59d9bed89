// The files of one run, copied to where its archive is made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/evidence/redaction.h"
#include "engine/run/run.h"

namespace tally {

// A file that is not in the archive, but stands for what was measured: a program, data.
struct NamedFile {
  std::string path, sha256;  // no digest: it is too large to be read for it
  long long size = 0;
  bool changed = false;  // it was written after the run's last workpackage had ended
  auto operator<=>(const NamedFile&) const = default;
};

struct StagedRun {
  std::string folder;                // below the archive's: "runs/000003"
  std::vector<NamedFile> programs;   // that commands, scripts and parameters name
  std::vector<NamedFile> data;       // that lay in work folders and are not copied
  std::vector<std::string> outside;  // files that results read and that are not in the run
};

// Copies the run to `root`/staged->folder. `redaction` learns the run's secrets.
Status stage_run(const Run& run, const std::string& root, Redaction* redaction, StagedRun* staged);

}  // namespace tally
