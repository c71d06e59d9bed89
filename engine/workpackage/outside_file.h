// A file outside a workpackage's own folder that results read for it. Earlier runs and other
// workpackages may write to it, too.
#pragma once

#include <string>
#include <vector>

#include "engine/base/file_stamp.h"

namespace tally {

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
