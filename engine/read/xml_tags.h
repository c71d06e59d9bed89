// Finds the tag that breaks an XML text. A parser only says where it gave up.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace tally {

// The first end tag that does not match its start tag, or a missing end tag at the end of the text.
struct TagMismatch {
  std::string_view open;       // the innermost open element; empty: none is open
  size_t open_at = 0;          // the offset of its name
  bool ends = false;           // the text ends although an element is open
  std::string_view close;      // the name in the end tag
  size_t close_at = 0;         // the offset of the end tag's "/"
  bool close_is_open = false;  // whether an element around `open` has the name `close`
};

// Returns nothing if all tags match, or if a tag, a comment or CDATA has no end. The views point
// into `text`.
std::optional<TagMismatch> find_tag_mismatch(std::string_view text);

}  // namespace tally
