#include "engine/read/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/base/text.h"
#include "engine/read/input_files.h"
#include "engine/read/yaml_faults.h"
#include "engine/read/yaml_scalar.h"

namespace tally {
namespace {

using Kind = YamlNode::Kind;

constexpr size_t kDeepestNode = 200;  // as elements of XML
constexpr const char* kYamlTag = "tag:yaml.org,2002:";

// Builds the tree from yaml-cpp's events. The events have the marks of keys and the places of
// aliases; yaml-cpp's own node tree does not.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const LineIndex& lines, Diagnostics& diagnostics)
      : text_(text), lines_(lines), diagnostics_(diagnostics) {}

  YamlPtr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(Kind::null, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    auto found = anchors_.find(anchor);
    Mark here = at(mark);
    if (found == anchors_.end() || is_open(found->second.get())) {
      diagnostics_.error(here, "this alias stands inside what it names, so it would never end");
      add(make(Kind::null, mark), 0);
      return;
    }
    auto copy = std::make_shared<YamlNode>(*found->second);
    copy->mark = here;
    add(std::move(copy), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlPtr node = make(Kind::scalar, mark);
    if (tag != "?" && mark.line >= 0 && !quote_closes(mark)) {
      diagnostics_.error(node->mark, "the quote that opens here is never closed",
                         "all of the file after it would be this text");
    }
    type_scalar(tag, value, node.get());
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Kind::sequence, mark), tag, "seq", anchor, mark);
  }
  void OnSequenceEnd() override { open_.pop_back(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Kind::mapping, mark), tag, "map", anchor, mark);
  }
  void OnMapEnd() override {
    merge_keys(open_.back().node.get());
    open_.pop_back();
  }

 private:
  struct Open {
    YamlPtr node;
    YamlPtr key;  // a mapping's key that waits for its value
    std::map<std::string, Mark> keys;
  };

  Mark at(const YAML::Mark& mark) const {
    if (mark.line < 0) return {};
    return lines_.at(static_cast<size_t>(mark.line), static_cast<size_t>(mark.column));
  }

  // Whether the quoted text at `mark` is closed. yaml-cpp accepts the end of the file as the
  // closing quote. True for a text without quotes.
  bool quote_closes(const YAML::Mark& mark) const {
    size_t at = lines_.offset(static_cast<size_t>(mark.line), static_cast<size_t>(mark.column));
    while (at < text_.size() && (text_[at] == '&' || text_[at] == '!')) {  // anchor, tag
      at = text_.find_first_of(" \n", at);
      at = std::min(text_.find_first_not_of(" \n", at), text_.size());
    }
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return true;
    const char quote = text_[at];
    for (++at; at < text_.size(); ++at) {
      if (quote == '"' && text_[at] == '\\') {
        ++at;
      } else if (text_[at] == quote) {
        if (quote == '"' || at + 1 >= text_.size() || text_[at + 1] != quote) return true;
        ++at;
      }
    }
    return false;
  }

  YamlPtr make(Kind kind, const YAML::Mark& mark) const {
    auto node = std::make_shared<YamlNode>();
    node->kind = kind;
    node->mark = at(mark);
    return node;
  }

  bool is_open(const YamlNode* node) const {
    for (const Open& level : open_) {
      if (level.node.get() == node) return true;
    }
    return false;
  }

  void open(YamlPtr node, const std::string& tag, const char* own, YAML::anchor_t anchor,
            const YAML::Mark& mark) {
    if (open_.size() >= kDeepestNode)
      throw YAML::ParserException(
          mark, fmt::format("lists and mappings are nested more than {} deep", kDeepestNode));
    if (tag != "?" && tag != "!" && !tag.empty() && tag != kYamlTag + std::string(own)) {
      bad_tag(node->mark, tag);
    }
    add(node, anchor);
    open_.push_back({std::move(node), nullptr, {}});
  }

  void add(YamlPtr node, YAML::anchor_t anchor) {
    if (anchor != 0) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& level = open_.back();
    if (level.node->kind == Kind::sequence) {
      level.node->items.push_back(std::move(node));
    } else if (!level.key) {
      take_key(level, std::move(node));
    } else {
      // The mark of an empty value is that of the next token. The key's mark is more useful.
      if (node->kind == Kind::null) node->mark = level.key->mark;
      level.node->entries.emplace_back(std::move(level.key), std::move(node));
      level.key = nullptr;
    }
  }

  void take_key(Open& level, YamlPtr node) {
    if (node->kind == Kind::sequence || node->kind == Kind::mapping) {
      diagnostics_.error(node->mark, "a list or mapping cannot be a key here",
                         "quote the text if braces or brackets are meant as they stand");
    } else if (node->kind == Kind::null) {
      node->kind = Kind::scalar;
      node->value = "None";
    }
    if (!is_merge(*node)) {
      const std::string& written = node->written.empty() ? node->value : node->written;
      auto inserted = level.keys.emplace(written, node->mark);
      if (!inserted.second) {
        diagnostics_.error(node->mark, fmt::format("key '{}' is given twice", written),
                           "leave one out; a list holds several: [a, b]");
        diagnostics_.note(inserted.first->second, "the first one is here");
      }
    }
    level.key = std::move(node);
  }

  static bool is_merge(const YamlNode& key) { return key.value == kMerge; }

  // Puts the entries that << refers to before the mapping's own entries. Own entries override
  // merged ones. Among merged ones the first counts.
  void merge_keys(YamlNode* map) {
    std::vector<std::pair<YamlPtr, YamlPtr>> own, merged;
    std::map<std::string, bool> known;
    for (auto& entry : map->entries) {
      if (!is_merge(*entry.first)) known[entry.first->value] = true;
    }
    for (auto& entry : map->entries) {
      if (!is_merge(*entry.first)) {
        own.push_back(entry);
        continue;
      }
      std::vector<YamlPtr> from = {entry.second};
      if (entry.second->kind == Kind::sequence) from = entry.second->items;
      for (const YamlPtr& source : from) {
        if (source->kind != Kind::mapping) {
          diagnostics_.error(source->mark, "'<<' takes a mapping, or a list of mappings");
          continue;
        }
        for (const auto& inherited : source->entries) {
          if (known.emplace(inherited.first->value, true).second) merged.push_back(inherited);
        }
      }
    }
    merged.insert(merged.end(), own.begin(), own.end());
    map->entries = std::move(merged);
  }

  void bad_tag(const Mark& mark, const std::string& tag) {
    std::string shown =
        starts_with(tag, kYamlTag) ? "!!" + tag.substr(std::string(kYamlTag).size()) : tag;
    if (starts_with(shown, "!!python")) {
      diagnostics_.error(
          mark, fmt::format("'{}' would run Python code from this file", shown),
          "Tally never does; write the value itself, or a parameter with mode: python");
    } else {
      diagnostics_.error(
          mark, fmt::format("unknown YAML tag '{}'", shown),
          "only !include and YAML's own !!str, !!int, !!float, !!bool, !!null are read");
    }
  }

  void type_scalar(const std::string& tag, const std::string& value, YamlNode* node) {
    ScalarType type = ScalarType::text;
    if (tag == "!include") {
      node->include = true;
      node->value = value;
      return;
    }
    if (tag == "?" || tag.empty()) {
      type = resolve_scalar(value);
      bool is_key = !open_.empty() && open_.back().node->kind == Kind::mapping && !open_.back().key;
      if (type == ScalarType::merge && is_key) {
        node->value = kMerge;
        return;
      }
    } else if (tag != "!") {
      std::optional<ScalarType> named = type_of_tag(tag);
      if (!named) bad_tag(node->mark, tag);
      type = named.value_or(ScalarType::text);
    }
    node->type = type;
    if (type == ScalarType::null) {
      node->kind = Kind::null;
    } else if (const Status fits = construct_scalar(value, type, &node->value); !fits) {
      diagnostics_.error(node->mark, fits.message(), "quote it to mean the text itself");
    } else {
      if (value != node->value) node->written = value;
      const bool plain = tag == "?" || tag.empty();
      std::string core = plain ? core_scalar(value, type, node->value) : node->value;
      if (core != node->value) node->core = std::move(core);
    }
  }

  static std::optional<ScalarType> type_of_tag(const std::string& tag) {
    static const std::map<std::string, ScalarType> types = {
        {"str", ScalarType::text},       {"int", ScalarType::integer},
        {"float", ScalarType::floating}, {"bool", ScalarType::boolean},
        {"null", ScalarType::null},      {"timestamp", ScalarType::timestamp}};
    if (!starts_with(tag, kYamlTag)) return std::nullopt;
    auto found = types.find(tag.substr(std::string(kYamlTag).size()));
    if (found == types.end()) return std::nullopt;
    return found->second;
  }

  // YAML text cannot hold a NUL, so no key of the user can equal this one.
  static inline const std::string kMerge = std::string("<<\0", 3);

  std::string_view text_;
  const LineIndex& lines_;
  Diagnostics& diagnostics_;
  std::map<YAML::anchor_t, YamlPtr> anchors_;
  std::vector<Open> open_;
  YamlPtr root_;
};

std::string line_of(const std::string& text, uint32_t number) {
  size_t begin = 0;
  for (uint32_t i = 1; i < number && begin != std::string::npos; ++i) {
    begin = text.find('\n', begin);
    if (begin != std::string::npos) ++begin;
  }
  return begin == std::string::npos ? "" : text.substr(begin, text.find('\n', begin) - begin);
}

// Reports a byte that is not allowed in YAML. yaml-cpp would pass it on or stop there silently.
// Returns false after reporting it.
bool check_characters(const std::string& text, const LineIndex& lines, Diagnostics& diagnostics) {
  constexpr size_t kMostOpen = 10000;  // those in texts count, too
  size_t open = 0;
  for (size_t i = 0; i < text.size();) {
    auto c = static_cast<unsigned char>(text[i]);
    // Nobody writes so many, and yaml-cpp takes seconds to find where each ends.
    if (c == '{' || c == '[') ++open;
    if ((c == '}' || c == ']') && open > 0) --open;
    if (open > kMostOpen) {
      diagnostics.error(lines.at_offset(i),
                        fmt::format("more than {} brackets are open here", kMostOpen));
      return false;
    }
    if (c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0x7F)) {
      ++i;
      continue;
    }
    size_t length = utf8_length(std::string_view(text).substr(i));
    if (length == 0) {
      diagnostics.error(lines.at_offset(i),
                        fmt::format("byte 0x{:02X} is not UTF-8, so the file cannot be read", c),
                        "save the file as UTF-8");
      return false;
    }
    if (c < 0x20 || c == 0x7F) {
      diagnostics.error(lines.at_offset(i),
                        fmt::format("control character 0x{:02X} is not allowed in YAML", c),
                        "in a quoted text write it as \\x and two digits");
      return false;
    }
    i += length;
  }
  return true;
}

}  // namespace

const YamlNode* YamlNode::find(const std::string& key) const {
  for (const auto& entry : entries) {
    if (entry.first->value == key) return entry.second.get();
  }
  return nullptr;
}

YamlPtr parse_yaml(uint32_t file, const std::string& text, Diagnostics& diagnostics) {
  LineIndex lines(file, text);
  if (!check_characters(text, lines, diagnostics)) return nullptr;
  // If the syntax is broken, earlier problems are usually consequences of it. They are reported
  // only if parsing succeeds.
  Diagnostics noticed;
  TreeBuilder builder(text, lines, noticed);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return std::make_shared<YamlNode>();
    TreeBuilder second(text, lines, noticed);
    if (parser.HandleNextDocument(second)) {
      Mark place = second.root() ? second.root()->mark : Mark{file, 1, 1};
      noticed.error(place, "a second YAML document starts here; a benchmark file holds one",
                    "remove the line '---', or make the benchmarks a list");
    }
  } catch (const YAML::Exception& e) {
    Mark place{file, 1, 1};
    if (!e.mark.is_null()) {
      place = lines.at(static_cast<size_t>(e.mark.line), static_cast<size_t>(e.mark.column));
    }
    const size_t found = e.mark.is_null() ? 0
                                          : lines.offset(static_cast<size_t>(e.mark.line),
                                                         static_cast<size_t>(e.mark.column));
    if (const std::optional<YamlFault> fault = yaml_fault(text, found, e.msg)) {
      diagnostics.error(lines.at_offset(fault->at), "YAML syntax: " + fault->message, fault->hint);
    } else {
      diagnostics.error(place, "YAML syntax: " + e.msg,
                        yaml_hint(e.msg, line_of(text, place.line)));
    }
    return nullptr;
  }
  diagnostics.append(noticed);
  return builder.root();
}

const std::string& written_text(const YamlNode& text) {
  return text.written.empty() ? text.value : text.written;
}

const YamlNode* find_written(const YamlNode& mapping, std::string_view key) {
  for (const auto& [name, value] : mapping.entries)
    if (written_text(*name) == key) return value.get();
  return nullptr;
}

YamlPtr make_scalar(std::string text, const Mark& mark) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::scalar;
  node->mark = mark;
  node->value = std::move(text);
  return node;
}

YamlPtr make_mapping(const Mark& mark) {
  auto node = std::make_shared<YamlNode>();
  node->kind = YamlNode::Kind::mapping;
  node->mark = mark;
  return node;
}

void add(YamlNode* mapping, const char* key, YamlPtr value) {
  YamlPtr name = make_scalar(key, value->mark);
  mapping->entries.emplace_back(std::move(name), std::move(value));
}
void add_text(YamlNode* mapping, const char* key, const std::string& text, const Mark& mark) {
  add(mapping, key, make_scalar(text, mark));
}

bool is_text(const YamlNode& node) {
  return node.kind == YamlNode::Kind::scalar || node.kind == YamlNode::Kind::null;
}

bool is_list_of(const YamlNode& node, YamlNode::Kind kind) {
  return node.kind == YamlNode::Kind::sequence && !node.items.empty() &&
         std::ranges::all_of(node.items, [&](const YamlPtr& item) { return item->kind == kind; });
}

}  // namespace tally
