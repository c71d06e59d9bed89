// A program's manual page.
#pragma once

#include <string>

#include "engine/base/command_spec.h"

namespace tally {

// roff for `man`: name, synopsis, options, commands with their options, and the program's sections.
std::string manual_page(const ProgramSpec& program);

}  // namespace tally
