// What belongs to a workpackage of the files outside the run's folder that results read.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

class Journal;
struct WorkpackageView;

struct OutsidePart {
  enum class Kind {
    own,        // the bytes [from, to)
    untouched,  // it was there before, and the workpackage wrote nothing to it
    changed,    // since the workpackage ended: what it wrote is not there any more
    shared,     // another workpackage of the run wrote to it at the same time
  };
  std::string path;  // absolute
  Kind kind = Kind::own;
  long long from = 0, to = 0;
  long long grown = 0;  // bytes that somebody added since
};

// Null: nothing is known of the file, so that all of it counts.
const OutsidePart* part_of(const WorkpackageView& workpackage, const std::string& path);

// Tells the views what the journal knows of such files, compared with what they are now.
Status take_outside_files(const Journal& journal, std::vector<WorkpackageView>* views);

}  // namespace tally
