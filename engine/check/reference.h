// The reference page of the workflow language.
#pragma once

#include <string>

namespace tally {

// docs/reference.md: every element and key of the schema table, in the order of the file.
std::string reference_markdown();

}  // namespace tally
