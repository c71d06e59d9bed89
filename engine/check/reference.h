// The reference page of the workflow language.
#pragma once

#include <string>

namespace tally {

// The text of docs/reference.md: every element and key of the schema table, in the table's order.
std::string reference_markdown();

}  // namespace tally
