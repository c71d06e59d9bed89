// Completion scripts for shells.
#pragma once

#include <string>

#include "engine/base/command_spec.h"

namespace tally {

// Each completes commands, options and their values, and files and folders where these belong.
std::string bash_completion(const ProgramSpec& program);
std::string zsh_completion(const ProgramSpec& program);
std::string fish_completion(const ProgramSpec& program);

}  // namespace tally
