// Finished work of setup and build steps that later runs in the same OUTPATH reuse.
// OUTPATH/.tally-store has one small text file (an entry) for each finished piece of work. The
// entry records the folder of the work, its inputs and a seal: the size and time of every file of
// the work. The work itself stays in the run that did it, because programs have their path built
// in.
//
// The store is safe under concurrent runs. An entry is written after its work has succeeded, to a
// temporary file that is then renamed. An entry is trusted only while every file of the seal is
// unchanged, so a run that was removed, wholly or in part, is never reused. Two runs that do the
// same work at the same time both do it, and the later entry stands.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/workspace/setup_inputs.h"

namespace tally {

class WorkStore {
 public:
  // `outpath`: the absolute path of the folder that holds the runs.
  explicit WorkStore(const std::string& outpath);

  // Returns the absolute folder of finished work of `step` with this content hash, or an empty
  // string when no work can be reused. `why` then gives the reason: nothing is kept yet, an input
  // differs from the last kept work, or files are gone or changed. Otherwise `why` names the run
  // that did the work. `instance` identifies this piece of work. Two pieces of work never have the
  // same instance, even in the same folder.
  std::string find(const StepInputs& inputs, const std::string& hash, std::string* why,
                   std::string* instance) const;
  // The entry that keep() writes for the work that `inputs` made in `work`. Its instance stays
  // empty when the work cannot be kept: it has no files, or a file name holds a newline.
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
