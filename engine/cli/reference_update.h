// Edits of the references in a workflow's text.
#pragma once

#include <string>
#include <vector>

#include "engine/base/mark.h"
#include "engine/base/status.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Replaces text between two byte offsets.
struct TextEdit {
  size_t begin = 0, end = 0;
  std::string text;
};

// Adds the edits that give a reference another condition and another note. `text`: the YAML file
// that it is in. An error if the reference is written in a form that cannot be edited safely: in a
// block scalar or with escapes.
Status edit_reference(const std::string& text, const Reference& reference,
                      const std::string& condition, const std::string& note,
                      std::vector<TextEdit>* edits);
// The text with all edits. They must not overlap.
std::string edited(const std::string& text, std::vector<TextEdit> edits);

}  // namespace tally
