// A workpackage's output for one pattern: one value of a sample of repeats.
#pragma once

#include <string>

namespace tally {

struct Sample {
  int workpackage = 0;
  std::string analyser, pattern;
  // The definition that finds the values (definition_of()): a workflow may give the pattern another
  // text later.
  std::string definition;
  std::string value;   // of the first match, for people who read the journal
  std::string packed;  // all statistics of its matches: Statistics::packed()
};

}  // namespace tally
