// Files that other tags than those in force would choose. Internal to check/.
#pragma once

#include <set>
#include <string>

#include "engine/check/sets.h"

namespace tally {

struct OtherFiles {
  const Document& document;  // the main file
  const Element& whole;      // its tree before tags removed elements
  const CheckOptions& options;
  const Rules& rules;
  const std::set<std::string>& tags;  // in force
  Sources& sources;
};

// The names of tags in all files that the main file may take sets from, also those that are chosen
// by tags. Files that cannot be read are left out.
std::set<std::string> tags_of_all_files(const OtherFiles& others);

// Checks the platforms that the tags in force do not choose: that their files are there and define
// what a step needs.
void check_other_platforms(const OtherFiles& others, Diagnostics& diagnostics);

}  // namespace tally
