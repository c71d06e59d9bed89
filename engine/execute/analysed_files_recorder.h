// Records what the files that results read were before and after a workpackage. Files outside its
// own folder are looked at twice: only so can its values be told from those of earlier runs and of
// other workpackages. Its own files are looked at when it has ended: whoever changes them
// afterwards changes its values.
#pragma once

#include <string>
#include <vector>

#include "engine/execute/run_context.h"
#include "engine/workpackage/ended_file.h"
#include "engine/workpackage/measured.h"

namespace tally {

class AnalysedFilesRecorder {
 public:
  explicit AnalysedFilesRecorder(RunContext& context) : context_(context) {}

  // The files as they are when a workpackage ends.
  struct End {
    OutsideFiles outside;
    EndedFiles own;
  };
  // Look before the first operation of an attempt, and when the workpackage has ended, well or not.
  // An error: the host cannot tell what is there. An engine that went on without knowing would
  // count another run's values, or would take the files for changed.
  Status look_before(int id, OutsideFiles* files) const;
  Status look_after(int id, bool well, End* end) const;
  // An error: the journal cannot be written.
  Status record(int id, OutsideFiles files) const;
  Status record(int id, End end) const;

 private:
  enum class Which { outside, all };
  struct Found {
    std::vector<std::string> paths;       // absolute; also those of plain names that are not there
    std::vector<std::string> open_names;  // which may have another file later: those without, globs
    std::vector<std::string> globs;       // pattern_in() of those of other folders than its own
  };
  struct Folders {
    std::string work_dir;
    std::string own_dir;  // where a name is looked for first; empty: nowhere
  };
  Status find(int id, Which which, Found* found) const;
  Status add_name(int id, const std::string& name, const Folders& folders, Found& found) const;
  bool is_own(int id, const std::string& path) const;
  EndedFiles begin_end(int id) const;
  Status look_outside(int id, const Found& found, long long own_until_ns,
                      OutsideFiles* files) const;
  Status check_folder(int id) const;
  Status look_own(int id, const Found& found, EndedFiles* ended) const;

  RunContext& context_;
};

}  // namespace tally
