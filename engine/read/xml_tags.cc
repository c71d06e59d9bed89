#include "engine/read/xml_tags.h"

#include <algorithm>
#include <vector>

namespace tally {

namespace {

constexpr auto kNone = std::string_view::npos;

struct OpenTag {
  std::string_view name;
  size_t at;
};

// The name that begins at `at`.
std::string_view name_at(std::string_view text, size_t at) {
  return text.substr(at, text.find_first_of(" \t\r\n/>", at) - at);
}

// The offset after the first `closing` at or after `at`, or kNone if there is none.
size_t after(std::string_view text, size_t at, std::string_view closing) {
  const size_t end = text.find(closing, at);
  return end == kNone ? kNone : end + closing.size();
}

// The offset after a comment, CDATA, processing instruction or declaration. Returns `at` if there
// is none, and kNone if it does not end.
size_t skip_markup(std::string_view text, size_t at) {
  const auto begins = [&](std::string_view with) { return text.substr(at, with.size()) == with; };
  if (begins("<!--")) return after(text, at + 4, "-->");
  if (begins("<![CDATA[")) return after(text, at, "]]>");
  if (begins("<?")) return after(text, at, "?>");
  if (!begins("<!")) return at;
  const size_t end = text.find_first_of("[>", at);  // a document type, with or without declarations
  return end != kNone && text[end] == '[' ? after(text, end, "]>") : after(text, at, ">");
}

// The offset of a start tag's '>', past the values of its attributes.
size_t end_of_start_tag(std::string_view text, size_t at) {
  for (;;) {
    at = text.find_first_of("\"'>", at);
    if (at == kNone || text[at] == '>') return at;
    at = text.find(text[at], at + 1);
    if (at == kNone) return at;
    ++at;
  }
}

}  // namespace

std::optional<TagMismatch> find_tag_mismatch(std::string_view text) {
  std::vector<OpenTag> open;
  const auto mismatch = [&](std::string_view close, size_t at) {
    TagMismatch found;
    found.close = close;
    found.close_at = at;
    if (open.empty()) return found;
    found.open = open.back().name;
    found.open_at = open.back().at;
    found.close_is_open = std::any_of(open.begin(), open.end(),
                                      [&](const OpenTag& tag) { return tag.name == close; });
    return found;
  };
  for (size_t at = text.find('<'); at != kNone; at = text.find('<', at)) {
    const size_t next = skip_markup(text, at);
    if (next == kNone) return std::nullopt;
    if (next != at) {
      at = next;
      continue;
    }
    const bool closes = text.substr(at + 1, 1) == "/";
    const size_t name_place = at + (closes ? 2 : 1);
    const std::string_view name = name_at(text, name_place);
    const size_t end = closes ? text.find('>', at) : end_of_start_tag(text, name_place);
    if (end == kNone) return std::nullopt;
    if (closes) {
      if (open.empty() || open.back().name != name) return mismatch(name, at + 1);
      open.pop_back();
    } else if (text[end - 1] != '/') {
      open.push_back({name, name_place});
    }
    at = end + 1;
  }
  if (open.empty()) return std::nullopt;
  TagMismatch found = mismatch({}, text.size());
  found.ends = true;
  return found;
}

}  // namespace tally
