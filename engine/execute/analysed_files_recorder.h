// Records what the files that results read were before and after a workpackage. Files outside the
// run's folder are looked at twice: only so can its values be told from those of earlier runs and of
// other workpackages. Its own files are looked at when it has ended: whoever changes them afterwards
// changes its values.
#pragma once

#include <string>
#include <vector>

#include "engine/execute/run_context.h"
#include "engine/workpackage/ended_file.h"

namespace tally {

class AnalysedFilesRecorder {
 public:
  explicit AnalysedFilesRecorder(RunContext& context) : context_(context) {}

  // Call it before the first operation of an attempt, and when the workpackage has ended, well or
  // not.
  Status began(int id) const;
  Status ended(int id, bool well) const;

 private:
  enum class Which { outside, all };
  // *open_names: names for which there may be another file later: those without a file, and globs.
  std::vector<std::string> paths(int id, Which which,
                                 std::vector<std::string>* open_names = nullptr) const;
  bool is_own(const std::string& path) const;
  Status ended_outside(int id, const std::vector<std::string>& all) const;
  Status ended_own(int id, const std::vector<std::string>& all,
                   const std::vector<std::string>& open_names) const;

  RunContext& context_;
};

}  // namespace tally
