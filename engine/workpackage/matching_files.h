// Finds the files that an analyser names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// The names in a list that is divided by commas.
std::vector<std::string> names_of(const std::string& list);
bool is_glob(const std::string& name);
// Natural order: digits compare as numbers, so f2 comes before f10.
bool natural_less(std::string_view a, std::string_view b);
// The pattern that matching_paths() takes for a glob of that folder.
std::string pattern_in(const std::string& work_dir, const std::string& name);
// The folder that the system opens for the part of the name before the pattern.
std::string folder_of_pattern(const std::string& work_dir, const std::string& name);
// pattern_in() of that folder, absolute.
std::string opened_pattern(const std::string& work_dir, const std::string& name);
// The files of a name or glob in natural order. If `own_dir` is given and has any, only those.
Status matching_files(const std::string& work_dir, const std::string& name,
                      const std::string& own_dir, std::vector<std::string>* files);
// The files for the `which`-th name in a step's analyse, when a log was given by hand.
Status files_beside_log(const std::string& log, const std::string& name,
                        const std::string& first_name, size_t which,
                        std::vector<std::string>* files);

}  // namespace tally
