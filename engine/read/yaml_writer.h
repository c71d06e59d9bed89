// A document as YAML, which reads as the same document.
#pragma once

#include <string>

#include "engine/read/document.h"

namespace tally {

// The text as a scalar on one line of block style: bare where it may be, else in quotes.
std::string yaml_scalar(const std::string& text);

// The document in the long form, includes spliced in, in block style. `as_written`: plain values have
// the text that stands in the file, as in files of Tally's keys; else PyYAML's.
std::string document_to_yaml(const Document& document, bool as_written);

}  // namespace tally
