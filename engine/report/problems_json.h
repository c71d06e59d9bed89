// Problems of input files as JSON.
#pragma once

#include <string>
#include <vector>

#include "engine/base/problems.h"

namespace tally {

// {"version": 1, "errors": 1, "warnings": 0, "problems": [{"file": ..., "line": ..., ...}]}
std::string problems_as_json(const std::vector<Problem>& problems);
// SARIF 2.1.0, which code scanners read. `version`: this program's.
std::string problems_as_sarif(const std::vector<Problem>& problems, const std::string& version);

}  // namespace tally
