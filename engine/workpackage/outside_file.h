// A file outside the run's folder that results read for a workpackage. Earlier runs and other
// workpackages may write to it, too.
#pragma once

#include <string>
#include <vector>

#include "engine/base/file_stamp.h"

namespace tally {

struct OutsideFile {
  std::string path;           // absolute
  FileStamp before;           // when the workpackage began
  std::string before_digest;  // of all bytes then; empty: there was no file
  bool ended = false;         // the workpackage has, and what follows is known
  FileStamp after;            // when it ended
  long long from = 0;         // it wrote the bytes [from, after.size)
  std::string digest;         // of these; empty: it wrote nothing
  bool untouched() const { return ended && after == before; }
};

using OutsideFiles = std::vector<OutsideFile>;

}  // namespace tally
