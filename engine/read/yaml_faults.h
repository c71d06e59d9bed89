// Faults of a file that is no YAML, in words for people who do not know YAML well.
// Private to read/.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tally {

struct YamlFault {
  size_t at = 0;  // the byte of the text where the mistake begins
  std::string message, hint;
};

// Looks for the cause of a syntax error that yaml-cpp found at the byte `found`, with its message.
// Empty: yaml-cpp's own place and message say it.
std::optional<YamlFault> yaml_fault(std::string_view text, size_t found,
                                    const std::string& message);
// A hint for yaml-cpp's message at the line `line`, or "".
std::string yaml_hint(const std::string& message, std::string_view line);

}  // namespace tally
