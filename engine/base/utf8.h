// Converts code points to bytes.
#pragma once

#include <cstdint>
#include <string>

namespace tally {

// Appends `code` in UTF-8.
void append_utf8(uint32_t code, std::string& out);

}  // namespace tally
