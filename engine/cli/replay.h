// Runs a part of an archived run again, on the machine that it ran on, and says whether the values
// agree.
#pragma once

#include <string>

#include "engine/run/settings.h"

namespace tally {

struct ReplayRequest {
  std::string folder;    // of the run, out of its archive; stays as it is
  std::string work;      // an empty folder in which the part is run
  std::string seed;      // chooses the points: the archive's digest, so that nobody does
  double share = 0;      // of the points; at least one is run
  double threshold = 0;  // a smaller change does not matter
};
// Prints what was run and how it compares. Returns an exit code: kReferenceMissed where a value
// does not agree, kFailed where nothing could be compared.
int replay(const Settings& settings, const ReplayRequest& request);

}  // namespace tally
