// $JUBE_GROUP_NAME: runs that a whole group may read and go on with.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace tally {

// The group that runs belong to, from $JUBE_GROUP_NAME; empty: nobody's in particular.
class RunGroup {
 public:
  // Looks the group up, and makes what this process writes from now on writable for its group
  // (umask 002). Fails when there is no such group, or when we are not in it.
  static Status from_environment(RunGroup* out);

  // Gives a folder to the group. `inherit`: what is made in it belongs to the group, too.
  Status give(const std::string& folder, bool inherit) const;
  // Lets the group write a file that was made with fixed permissions, as SQLite's are.
  void open_to(const std::string& file) const;

 private:
  long gid_ = -1;
};

}  // namespace tally
