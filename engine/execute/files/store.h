// Work of setup and build steps that later runs in the same outpath take over. OUTPATH/.tally-store
// has one small text file for each finished piece of work: where it lies, what it was made from,
// and a seal, the size and time of every file it consists of. The work itself stays in the run that
// did it, because programs have their path built in.
//
// Safe under concurrent runs: an entry is written after its work has ended well, in one step
// (written beside, then renamed), and is believed only while every file of the seal is as it was. A
// run that was removed, wholly or half, is thus never taken for a result; two runs that do the same
// work at the same time both do it, and the later entry stands.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/execute/files/setup_inputs.h"

namespace tally {

class WorkStore {
 public:
  // `outpath`: the folder of the runs, absolute.
  explicit WorkStore(const std::string& outpath);

  // Finished work of `step` with this content hash: its folder, absolute; empty when there is none
  // to take over. `why` says why it has to be done (nothing kept yet, what differs from the work
  // kept last, files that are gone or changed), or of which run it is. `instance` names this very
  // work: two pieces of work never have the same, not even in one place.
  std::string find(const StepInputs& inputs, const std::string& hash, std::string* why,
                   std::string* instance) const;
  // What keep() would write of the work that `inputs` made in `work`. The entry's instance stays
  // empty when it cannot be kept (there are no files, or their names hold newlines).
  struct Entry {
    std::string step, hash, text, parts;
    std::string instance;
  };
  static Status seal(const StepInputs& inputs, const std::string& hash, const std::string& work,
                     Entry* entry);
  Status keep(const Entry& entry) const;

 private:
  std::string entry(const std::string& step, const std::string& hash) const;
  std::string last(const std::string& step) const;
  std::string folder_;
};

}  // namespace tally
