// Which tag of a broken XML text is to blame: a parser says only where it gave up.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace tally {

// The first end tag that is not the one that its place wants, or the want of one at the text's end.
struct TagMismatch {
  std::string_view open;       // the innermost element that is open there; empty: none is
  size_t open_at = 0;          // the offset of its name
  bool ends = false;           // the text ends where an end tag is wanted
  std::string_view close;      // the name in the end tag
  size_t close_at = 0;         // the offset of the end tag's "/"
  bool close_is_open = false;  // whether an element around `open` has the name `close`
};

// None when all tags match, or when a tag, a comment, or CDATA does not end. The views point into
// `text`.
std::optional<TagMismatch> find_tag_mismatch(std::string_view text);

}  // namespace tally
