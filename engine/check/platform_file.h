// Files that only describe platforms and hold nothing to run.
#pragma once

#include <string>

#include "engine/read/document.h"

namespace tally {

// "jsc (slurm)" for a file that describes platforms and has no step. Empty for any other file.
std::string platforms_of(const Element& root);
bool describes_platform(const Element& root);

// A workflow that submits one job to the given platform of a file.
std::string job_on(const std::string& platform);

}  // namespace tally
