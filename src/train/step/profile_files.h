// The files of --profile-dir.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tally::train {

struct ProfileFile {
  std::string name;
  std::string beginning;  // identifies an earlier one
};

// Makes the folder. An earlier profile is replaced, which `notice` is told; throws
// std::runtime_error where a file of another kind has one of the names, or where files cannot be
// written.
void prepare_profile_folder(const std::string& folder, const std::vector<ProfileFile>& files,
                            const std::function<void(const std::string&)>& notice);
// Writes FOLDER/NAME whole or not at all.
void write_profile_file(const std::string& folder, const std::string& name,
                        const std::string& text);

}  // namespace tally::train
