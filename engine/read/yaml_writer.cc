#include "engine/read/yaml_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/base/text.h"
#include "engine/read/yaml_scalar.h"

namespace tally {
namespace {

// The length of a character at `at` that YAML's readers take for a line's end, refuse, or drop: C1
// controls, U+2028, U+2029, U+FEFF. 0: it is none.
size_t special_length(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) < 0xA0) return 2;
  if (byte(0) == 0xE2 && byte(1) == 0x80 && (byte(2) == 0xA8 || byte(2) == 0xA9)) return 3;
  return byte(0) == 0xEF && byte(1) == 0xBB && byte(2) == 0xBF ? 3 : 0;
}
bool has_special(const std::string& text) {
  for (size_t at = 0; at < text.size(); ++at)
    if (special_length(text, at) != 0) return true;
  return false;
}

// Whether YAML's grammar lets the text stand without quotes in block style.
bool may_be_plain(const std::string& text) {
  if (has_special(text)) return false;
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (std::string_view("!&*?|>@`\"'%#,[]{}=<").find(text.front()) != std::string_view::npos)
    return false;
  const bool dash = text.front() == '-' || text.front() == ':';
  if (dash && (text.size() == 1 || text[1] == ' ' || starts_with(text, "---"))) return false;
  const auto special = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  return text.find(": ") == std::string::npos && text.find(" #") == std::string::npos &&
         !starts_with(text, "...") && std::ranges::none_of(text, special);
}

// Whether a literal block keeps the text: whole lines of printable characters, the first without a
// blank in front.
bool may_be_block(const std::string& text) {
  if (has_special(text)) return false;
  if (text.find('\n') == std::string::npos || text.front() == ' ' || text.front() == '\n')
    return false;
  if (text.size() > 1 && text.back() == '\n' && text[text.size() - 2] == '\n') return false;
  return std::ranges::none_of(text, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F;
  });
}

std::string double_quoted(const std::string& text) {
  std::string out = "\"";
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t length = special_length(text, at); length != 0) {
      const auto low = static_cast<unsigned char>(text[at + length - 1]);
      const bool mark = byte == 0xEF;
      out += fmt::format("\\u{:04x}", length == 2 ? low : mark ? 0xFEFFU : 0x2000U + low - 0x80U);
      at += length - 1;
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || c == 0x7F) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  return out + '"';
}

bool plain_bytes(const std::string& text) {
  return !has_special(text) &&
         std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

std::string replaced_quotes(const std::string& text) {
  std::string out;
  for (char c : text) out.append(c == '\'' ? 2 : 1, c);
  return out;
}

// Whether YAML reads the text, without quotes, as this text.
bool reads_as_itself(const std::string& text) {
  const ScalarType type = resolve_scalar(text);
  if (type == ScalarType::text) return true;
  std::string read;
  return type != ScalarType::null && construct_scalar(text, type, &read) && read == text &&
         core_scalar(text, type, read) == text;
}

class Writer {
 public:
  Writer(const Document& document, bool as_written) : as_written_(as_written) {
    for (const CoreValue& value : document.core_values) values_[key(value.mark)] = &value;
  }

  std::string whole(const Element& root) {
    // One benchmark has its keys at the top level, unless sets of the file stand beside it.
    size_t benchmarks = 0, sets = 0;
    for (const Element& child : root.children) {
      ++(child.name == "benchmark" ? benchmarks : sets);
      const auto& global = {"selection", "include-path", "check_tags", "tags"};
      if (contains(global, child.name)) --sets;
    }
    if (benchmarks != 1 || sets != 0) {
      entries(root, 0);
      return std::move(out_);
    }
    Element flat = root;
    std::erase_if(flat.children, [](const Element& child) { return child.name == "benchmark"; });
    for (const Element& child : root.children) {
      if (child.name != "benchmark") continue;
      flat.attributes.insert(flat.attributes.end(), child.attributes.begin(),
                             child.attributes.end());
      flat.children.insert(flat.children.end(), child.children.begin(), child.children.end());
    }
    entries(flat, 0);
    return std::move(out_);
  }

 private:
  using Key = std::tuple<uint32_t, uint32_t, uint32_t>;
  static Key key(const Mark& mark) { return {mark.file, mark.line, mark.column}; }

  void indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

  // The scalar, with the line's end.
  void scalar(const Text& text, int depth) {
    const auto found = values_.find(key(text.mark));
    if (found != values_.end() && found->second->pyyaml == text.value) {
      const std::string& written = found->second->written;
      const bool list = written.find(',') != std::string::npos;  // names, joined
      if (!list || as_written_) {
        out_ += written + '\n';
        return;
      }
    }
    const std::string& value = text.value;
    if (may_be_block(value)) {
      out_ += value.back() == '\n' ? "|\n" : "|-\n";
      const std::string_view lines(value.data(), value.size() - (value.back() == '\n' ? 1 : 0));
      for (const std::string& line : split(lines, '\n')) {
        if (!line.empty()) indent(depth);
        out_ += line + '\n';
      }
    } else {
      out_ += yaml_scalar(value) + '\n';
    }
  }

  static std::vector<std::string> split(std::string_view text, char at) {
    std::vector<std::string> parts(1);
    for (char c : text) {
      if (c == at) {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    return parts;
  }

  // The keys of an element, one a line.
  void entries(const Element& element, int depth, bool first_is_open = false) {
    bool open = first_is_open;  // the first key stands behind "- "
    const auto begin = [&] {
      if (!open) indent(depth);
      open = false;
    };
    for (size_t i = 0; i < element.attributes.size(); ++i) {
      const Attribute& a = element.attributes[i];
      begin();
      out_ += key_text(a.name) + ":";
      if (!a.of_list) {
        out_ += ' ';
        scalar(a.value, depth + 1);
        continue;
      }
      out_ += '\n';
      for (;; ++i) {
        indent(depth + 1);
        out_ += "- ";
        scalar(element.attributes[i].value, depth + 2);
        const bool more = i + 1 < element.attributes.size() && element.attributes[i + 1].of_list &&
                          element.attributes[i + 1].name.value == a.name.value;
        if (!more) break;
      }
    }
    if (!element.text.value.empty()) {
      begin();
      out_ += "_: ";
      scalar(element.text, depth + 1);
    }
    std::vector<std::string> done;
    for (const Element& child : element.children) {
      if (contains(done, child.name)) continue;
      done.push_back(child.name);
      begin();
      group(element, child.name, depth);
    }
  }

  std::string key_text(const Text& name) const {
    const auto found = values_.find(key(name.mark));
    if (found != values_.end() && found->second->pyyaml == name.value)
      return found->second->written;
    return may_be_plain(name.value) && reads_as_itself(name.value) ? name.value
                                                                   : double_quoted(name.value);
  }

  // All children of one name: one of them, or a list.
  void group(const Element& parent, const std::string& name, int depth) {
    std::vector<const Element*> all;
    for (const Element& child : parent.children)
      if (child.name == name) all.push_back(&child);
    out_ += name + ":";
    size_t groups = 0;
    for (size_t i = 0; i < all.size(); i += same_list(all, i)) ++groups;
    if (groups == 1) {
      if (is_leaf(*all[0])) {
        out_ += ' ';
        scalar(all[0]->text, depth + 1);
        return;
      }
      out_ += '\n';
      definition(all, 0, depth + 1, false);
      return;
    }
    out_ += '\n';
    for (size_t i = 0; i < all.size(); i += same_list(all, i)) {
      indent(depth + 1);
      out_ += "- ";
      if (is_leaf(*all[i])) {
        scalar(all[i]->text, depth + 2);
      } else {
        definition(all, i, depth + 2, true);
      }
    }
  }

  // One element, or those that came from a list under `_`.
  void definition(const std::vector<const Element*>& all, size_t at, int depth, bool open) {
    const size_t count = same_list(all, at);
    Element head = *all[at];
    if (count > 1) head.text = {};
    entries(head, depth, open);
    if (count == 1) return;
    indent(depth);
    out_ += "_:\n";
    for (size_t i = at; i < at + count; ++i) {
      indent(depth + 1);
      out_ += "- ";
      scalar(all[i]->text, depth + 2);
    }
  }

  static bool is_leaf(const Element& element) {
    return element.attributes.empty() && element.children.empty();
  }

  // How many elements from `at` on came from one list under `_`: their keys are the same ones.
  static size_t same_list(const std::vector<const Element*>& all, size_t at) {
    size_t count = 1;
    const std::vector<Attribute>& keys = all[at]->attributes;
    while (at + count < all.size() && !keys.empty() && all[at]->children.empty()) {
      const std::vector<Attribute>& next = all[at + count]->attributes;
      const bool same = std::equal(next.begin(), next.end(), keys.begin(), keys.end(),
                                   [](const Attribute& a, const Attribute& b) {
                                     return a.name.mark.known() && a.name.mark == b.name.mark &&
                                            a.value.value == b.value.value;
                                   });
      if (!same) break;
      ++count;
    }
    return count;
  }

  bool as_written_;
  std::map<Key, const CoreValue*> values_;
  std::string out_;
};

}  // namespace

std::string yaml_scalar(const std::string& text) {
  if (may_be_plain(text) && reads_as_itself(text)) return text;
  const bool single = text.find('\x7f') == std::string::npos && plain_bytes(text);
  return single ? "'" + replaced_quotes(text) + "'" : double_quoted(text);
}

std::string document_to_yaml(const Document& document, bool as_written) {
  return Writer(document, as_written).whole(document.root);
}

}  // namespace tally
