// Files that describe platforms and hold nothing that could be run.
#pragma once

#include <string>

#include "engine/read/document.h"

namespace tally {

// "jsc (slurm)" of a file that describes platforms and has no step; empty of any other.
std::string platforms_of(const Element& root);
bool describes_platform(const Element& root);

// A workflow that submits one job to the platform of a file.
std::string job_on(const std::string& platform);

}  // namespace tally
