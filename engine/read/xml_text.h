// The text of an XML file, where pugixml does not say enough. Internal to read/.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

// Entities that an XML file declares in its DOCTYPE. pugixml does not know them.

// XML's white space.
constexpr bool is_xml_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// A text in which the entities were replaced, and where each of its parts comes from.
class ExpandedXml {
 public:
  std::string text;

  // The offset in the file of what is at this offset in the text. All that an entity stands for
  // comes from its reference.
  size_t original(size_t offset) const;
  // From the end of the text on, the text is copied from the file's offset `from`.
  void copied(size_t from) { add({text.size(), from, true}); }
  // From the end of the text on, the text stands for the reference at the file's offset `from`.
  void replaced(size_t from) { add({text.size(), from, false}); }

 private:
  struct Piece {
    size_t at, from;
    bool copied;
  };
  void add(const Piece& piece);

  std::vector<Piece> pieces_;  // ordered by `at`; none: the text is the file's
};

struct XmlProblem {
  size_t at = 0;  // offset in the file
  std::string message, hint;
};

// Replaces the references to entities with a text in the DOCTYPE. The rest is not read: a reference
// to a file is a problem, and so is one that XML does not know. So is a text that grows beyond any
// real benchmark ("billion laughs"). References to characters, `&lt;` and the like stay.
std::optional<XmlProblem> expand_entities(std::string_view file, ExpandedXml* out);

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
