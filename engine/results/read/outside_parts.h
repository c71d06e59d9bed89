// The parts that belong to a workpackage of the files outside its own folder that results read.
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
    absent,     // it was not there when the workpackage ended
    unknown,    // it cannot be looked at now: `why`
  };
  std::string path;  // absolute; of `absent` also a glob
  Kind kind = Kind::own;
  long long from = 0, to = 0;
  long long grown = 0;     // bytes that somebody added since
  long long until_ns = 0;  // of `absent`: what was written until then is its own
  std::string why;
};

// Whether the path is below the own folder of the workpackage. `run`: the run's folder, with a
// slash.
bool is_in_folder_of(const std::string& run, int id, const std::string& path);

// Null: nothing is known of the file, so that all of it counts.
const OutsidePart* part_of(const WorkpackageView& workpackage, const std::string& path);

// Tells the views of the run in that folder what the journal knows of such files, compared with
// what they are now.
Status take_outside_files(const Journal& journal, const std::string& run_dir,
                          std::vector<WorkpackageView>* views);

}  // namespace tally
