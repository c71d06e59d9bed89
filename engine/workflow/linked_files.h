// Files that an analyser reads in the folder of one step and that another step wrote: the folder of
// a workpackage has a link to each one that it depends on.
#pragma once

#include <set>
#include <string>

#include "engine/workflow/workflow.h"

namespace tally {

// The steps that a file of `analyse` is read from through such a link, by the folders in its path.
std::set<std::string> steps_read(const Benchmark& benchmark, const Analyse& analyse,
                                 const AnalyseFile& file);

}  // namespace tally
