// Finds workpackages whose own outputs have changed since they ended: a process that outlived its
// command, a rotated log, an editor. Private to results/.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/results/read/workpackage_view.h"

namespace tally {

class Journal;

// Compares the files of a run's workpackages with what its journal has of them. The journal must
// outlive it.
class ChangedFiles {
 public:
  ChangedFiles(const Journal& journal, const std::string& run_dir);

  // Looks closely at the files of these workpackages. *marked becomes a copy of the views with
  // their `changes`, or stays empty if nothing has changed. A file that is the same but in another
  // place or with another time is unchanged, and so is one that another workpackage of the run has
  // left as it is now. A longer file is unchanged where its writer may have gone on
  // (EndedFiles::Writer). A workpackage whose folder is gone has no changes: Scanner reports that.
  Status mark(const Benchmark& benchmark, const std::vector<WorkpackageView>& views,
              const std::vector<int>& suspects, std::vector<WorkpackageView>* marked) const;

 private:
  const Journal& journal_;
  const std::string run_;  // absolute, with a slash
};

}  // namespace tally
