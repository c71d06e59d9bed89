// $JUBE_GROUP_NAME: runs that all members of a group may read and continue.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace tally {

// The group that owns the runs, from $JUBE_GROUP_NAME. Empty: no particular group.
class RunGroup {
 public:
  // Looks the group up, and makes all files that this process creates from now on writable for
  // their group (umask 002). Fails when the group does not exist, or when this user is not a
  // member.
  static Status from_environment(RunGroup* out);

  // Gives a folder to the group. `inherit`: new files in the folder belong to the group too.
  Status give(const std::string& folder, bool inherit) const;
  // Lets the group write a file that was created with fixed permissions, such as SQLite's files.
  void open_to(const std::string& file) const;

 private:
  long gid_ = -1;
};

}  // namespace tally
