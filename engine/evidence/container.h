// The archive's file: a ZIP whose members are stored as they are. Every system opens it, and the
// same members are the same bytes, with any version of any library. A changed byte stays in its
// member, and who wants the file small compresses it as a whole.
//
// The bytes follow from the members' names and contents alone: they lie in the order of their
// names, with no time and no owner. So a reader knows what each byte of the file has to be
// (APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.3).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// A byte, or several, that are not what they were written as.
struct Fault {
  std::string member;  // empty: of none
  std::string what;    // "its content has changed"
};

// Writes all regular files below `folder` into `file`, in the order of their names.
Status write_container(const std::string& folder, const std::string& file);

// Writes the members below `folder`. *faults: where the file is not as write_container() writes it. An
// error: it is no such file, or cannot be read, or `folder` not be written. `names`: in order.
Status unpack(const std::string& file, const std::string& folder, std::vector<std::string>* names,
              std::vector<Fault>* faults);

// Whether a member may have the name: a path below the folder, of printable characters.
bool is_member_name(const std::string& name);
// The regular files below a folder, by their paths from there, in byte order.
Status files_below(const std::string& folder, std::vector<std::string>* names);

}  // namespace tally
