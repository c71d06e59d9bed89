#include "engine/read/xml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "engine/base/text.h"

namespace tally {
namespace {

constexpr size_t kMostText = 8 << 20;  // beyond the file's own
constexpr size_t kMostReplacements = 100000;
constexpr size_t kDeepestEntity = 20;

// Whether the text begins with a reference to a character or to an entity that XML defines.
bool is_known_reference(std::string_view text) {
  for (const char* known : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"}) {
    if (starts_with(text, known)) return true;
  }
  if (!starts_with(text, "&#")) return false;
  size_t end = text.find(';');
  if (end == std::string_view::npos || end < 3 || end > 10) return false;
  std::string_view digits = text.substr(2, end - 2);
  if (digits[0] != 'x') return digits.find_first_not_of("0123456789") == std::string_view::npos;
  return digits.size() > 1 &&
         digits.find_first_not_of("0123456789abcdefABCDEF", 1) == std::string_view::npos;
}

// References to characters count where the entity is declared, so that `&#60;` is the `<` of a tag.
// One that is not a character stays, for the parser to report.
std::string with_characters(std::string_view value) {
  std::string text;
  for (size_t i = 0; i < value.size();) {
    const std::string_view rest = value.substr(i);
    if (!starts_with(rest, "&#") || !is_known_reference(rest)) {
      text += value[i++];
      continue;
    }
    const size_t end = rest.find(';');
    const bool hex = rest[2] == 'x';
    const std::string digits(rest.substr(hex ? 3 : 2, end));
    const unsigned long code = std::strtoul(digits.c_str(), nullptr, hex ? 16 : 10);
    if (code == 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
      text += rest.substr(0, end + 1);
    } else {
      append_utf8(static_cast<uint32_t>(code), text);
    }
    i += end + 1;
  }
  return text;
}

struct Entity {
  std::string text;
  bool in_file = false;  // SYSTEM or PUBLIC
  bool open = false;     // it is being replaced
};

// The declarations between the brackets of a DOCTYPE.
class Declarations {
 public:
  explicit Declarations(std::map<std::string, Entity, std::less<>>* entities)
      : entities_(*entities) {}

  // `at` is the offset of "<!DOCTYPE". Returns the offset behind its '>', or the file's end.
  size_t read(std::string_view file, size_t at) {
    file_ = file;
    at_ = at + 9;
    bool inside = false;
    while (at_ < file_.size()) {
      const std::string_view rest = file_.substr(at_);
      if (starts_with(rest, "<!--")) {
        skip_past("-->");
      } else if (starts_with(rest, "<?")) {
        skip_past("?>");
      } else if (inside && starts_with(rest, "<!ENTITY")) {
        at_ += 8;
        entity();
      } else if (inside && rest[0] == '<') {
        skip_declaration();
      } else if (rest[0] == '"' || rest[0] == '\'') {
        quoted();
      } else {
        ++at_;
        if (rest[0] == '[') inside = true;
        if (rest[0] == ']') inside = false;
        if (rest[0] == '>' && !inside) break;
      }
    }
    return std::min(at_, file_.size());
  }

 private:
  void skip_past(std::string_view end) {
    const size_t found = file_.find(end, at_);
    at_ = found == std::string_view::npos ? file_.size() : found + end.size();
  }

  // At a quote. Returns what is in the quotes.
  std::string_view quoted() {
    const char quote = file_[at_];
    const size_t start = at_ + 1;
    const size_t end = std::min(file_.find(quote, start), file_.size());
    at_ = std::min(end + 1, file_.size());
    return file_.substr(start, end - start);
  }

  void skip_spaces() {
    while (at_ < file_.size() && is_xml_space(file_[at_])) ++at_;
  }

  std::string_view word() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < file_.size() && !is_xml_space(file_[at_]) && file_[at_] != '>' &&
           file_[at_] != '"' && file_[at_] != '\'')
      ++at_;
    return file_.substr(start, at_ - start);
  }

  void skip_declaration() {
    while (at_ < file_.size() && file_[at_] != '>') {
      if (file_[at_] == '"' || file_[at_] == '\'') {
        quoted();
      } else {
        ++at_;
      }
    }
    if (at_ < file_.size()) ++at_;
  }

  // Behind "<!ENTITY". The first declaration of a name counts.
  void entity() {
    const std::string name(word());
    Entity entity;
    if (name != "%") {
      skip_spaces();
      const bool has_text = at_ < file_.size() && (file_[at_] == '"' || file_[at_] == '\'');
      if (has_text) entity.text = with_characters(quoted());
      entity.in_file = !has_text;
      entities_.emplace(name, std::move(entity));
    }
    skip_declaration();
  }

  std::map<std::string, Entity, std::less<>>& entities_;
  std::string_view file_;
  size_t at_ = 0;
};

class Expander {
 public:
  Expander(std::string_view file, ExpandedXml* out) : file_(file), out_(*out) {}

  std::optional<XmlProblem> expand() {
    out_.text.reserve(file_.size());
    copy(file_, 0, '\0');
    if (problem_) out_.text.clear();
    return std::move(problem_);
  }

 private:
  // Appends `text` with its references replaced. `quote`: of the attribute's value that the text is
  // in; 0: it is content. At depth 0 the text is the file.
  void copy(std::string_view text, size_t depth, char quote) {
    const bool in_value = quote != '\0';
    bool in_tag = in_value;
    for (size_t i = 0; i < text.size() && !problem_;) {
      if (depth == 0) at_ = i;
      const char c = text[i];
      if (c == '&') {
        i = reference(text, i, depth, in_tag ? quote : '\0');
        continue;
      }
      if (!in_tag && c == '<') {
        const size_t end = without_references(text, i, depth);
        if (end > i) {
          append(text.substr(i, end - i));
          i = end;
          continue;
        }
        in_tag = true;
      } else if (in_tag && !in_value) {
        if (quote == '\0' && (c == '"' || c == '\'')) {
          quote = c;
        } else if (c == quote) {
          quote = '\0';
        } else if (quote == '\0' && c == '>') {
          in_tag = false;
        }
      }
      if (in_value && (c == '<' || c == '"' || c == '\'')) {
        append(c == '<' ? "&lt;" : c == '"' ? "&quot;" : "&apos;");
      } else {
        append(text.substr(i, 1));
      }
      ++i;
    }
  }

  // The end of a comment, a CDATA section, an instruction or the DOCTYPE at `i`; otherwise `i`.
  size_t without_references(std::string_view text, size_t i, size_t depth) {
    const std::string_view rest = text.substr(i);
    const auto behind = [&](std::string_view end) {
      const size_t found = text.find(end, i);
      return found == std::string_view::npos ? text.size() : found + end.size();
    };
    if (starts_with(rest, "<!--")) return behind("-->");
    if (starts_with(rest, "<![CDATA[")) return behind("]]>");
    if (starts_with(rest, "<?")) return behind("?>");
    if (depth == 0 && starts_with(rest, "<!DOCTYPE")) return Declarations(&entities_).read(text, i);
    return i;
  }

  // Appends the reference at `i`, or what it stands for. Returns the offset behind it.
  size_t reference(std::string_view text, size_t i, size_t depth, char quote) {
    const std::string_view rest = text.substr(i);
    const size_t end = rest.find(';');
    if (is_known_reference(rest)) {
      append(rest.substr(0, end + 1));
      return i + end + 1;
    }
    const auto found =
        end == std::string_view::npos ? entities_.end() : entities_.find(rest.substr(1, end - 1));
    if (found == entities_.end()) {
      fail("'&' starts no entity that XML knows", "write '&amp;' for an ampersand");
      return text.size();
    }
    replace(found->first, &found->second, depth, quote);
    if (depth == 0) out_.copied(i + end + 1);
    return i + end + 1;
  }

  void replace(const std::string& name, Entity* entity, size_t depth, char quote) {
    if (entity->in_file) {
      fail(fmt::format("entity '{}' is in another file, which is not read", name),
           "write its text into the DOCTYPE, or use <include>");
    } else if (entity->open) {
      fail(fmt::format("entity '{}' contains itself", name));
    } else if (depth >= kDeepestEntity) {
      fail(fmt::format("entities are nested more than {} deep", kDeepestEntity));
    } else if (++replacements_ > kMostReplacements) {
      fail("entities multiply themselves: more than 100000 replacements");
    } else {
      if (depth == 0) out_.replaced(at_);
      entity->open = true;
      copy(entity->text, depth + 1, quote);
      entity->open = false;
    }
  }

  void append(std::string_view text) {
    out_.text += text;
    if (out_.text.size() > file_.size() + kMostText)
      fail("entities multiply themselves: the text grows by more than 8 MiB");
  }

  void fail(std::string message, std::string hint = {}) {
    if (!problem_) problem_ = XmlProblem{at_, std::move(message), std::move(hint)};
  }

  std::string_view file_;
  ExpandedXml& out_;
  std::map<std::string, Entity, std::less<>> entities_;
  size_t at_ = 0;  // in the file
  size_t replacements_ = 0;
  std::optional<XmlProblem> problem_;
};

}  // namespace

size_t ExpandedXml::original(size_t offset) const {
  const auto next =
      std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                       [](size_t value, const Piece& piece) { return value < piece.at; });
  if (next == pieces_.begin()) return offset;
  const Piece& piece = *(next - 1);
  return piece.copied ? piece.from + (offset - piece.at) : piece.from;
}

void ExpandedXml::add(const Piece& piece) {
  if (!pieces_.empty() && pieces_.back().at == piece.at) pieces_.pop_back();
  pieces_.push_back(piece);
}

std::optional<XmlProblem> expand_entities(std::string_view file, ExpandedXml* out) {
  return Expander(file, out).expand();
}

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
    found.close_is_open =
        std::ranges::any_of(open, [&](const OpenTag& tag) { return tag.name == close; });
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
    const size_t name_offset = at + (closes ? 2 : 1);
    const std::string_view name = name_at(text, name_offset);
    const size_t end = closes ? text.find('>', at) : end_of_start_tag(text, name_offset);
    if (end == kNone) return std::nullopt;
    if (closes) {
      if (open.empty() || open.back().name != name) return mismatch(name, at + 1);
      open.pop_back();
    } else if (text[end - 1] != '/') {
      open.push_back({name, name_offset});
    }
    at = end + 1;
  }
  if (open.empty()) return std::nullopt;
  TagMismatch found = mismatch({}, text.size());
  found.ends = true;
  return found;
}

}  // namespace tally
