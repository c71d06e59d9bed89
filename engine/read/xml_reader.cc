// Reads XML with pugixml. pugixml keeps no line numbers. An element's mark comes from its offset in
// the text. An attribute's mark comes from parsing the start tag again.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <pugixml.hpp>
#include <set>

#include "engine/base/text.h"
#include "engine/read/input_files.h"
#include "engine/read/reader.h"
#include "engine/read/schema.h"
#include "engine/read/xml_text.h"
#include "engine/tags/tags.h"

namespace tally {

namespace {

constexpr int kDeepestElement = 200;

// One XML file: its parsed form, and what is needed to make marks.
struct XmlFile {
  std::string path;
  std::string text;
  LineIndex lines;
  ExpandedXml expanded;  // what is parsed; offsets of nodes are offsets in its text
  pugi::xml_document document;

  XmlFile(uint32_t file, std::string file_path, std::string content)
      : path(std::move(file_path)), text(std::move(content)), lines(file, text) {}

  Mark at(size_t offset) const { return lines.at_offset(expanded.original(offset)); }
  Mark mark(const pugi::xml_node& node) const {
    ptrdiff_t offset = node.offset_debug();
    return at(offset < 0 ? 0 : static_cast<size_t>(offset));
  }
};

bool is_inner_element(const char* name) {
  const std::vector<ElementRule>& rules = element_rules();
  return std::string_view(name) != "jube" &&
         std::ranges::any_of(
             rules, [&](const ElementRule& rule) { return element_name(name) == rule.name; });
}

// The offsets of the attribute names and values in a start tag, in order. `at` is the offset of the
// tag's name.
std::vector<std::pair<size_t, size_t>> attribute_offsets(std::string_view text, size_t at) {
  std::vector<std::pair<size_t, size_t>> offsets;
  while (at < text.size() && !is_xml_space(text[at]) && text[at] != '>' && text[at] != '/') ++at;
  for (;;) {
    while (at < text.size() && is_xml_space(text[at])) ++at;
    if (at >= text.size() || text[at] == '>' || text[at] == '/') return offsets;
    size_t name = at;
    size_t equals = text.find('=', at);
    if (equals == std::string_view::npos) return offsets;
    size_t quote = text.find_first_of("\"'", equals);
    if (quote == std::string_view::npos) return offsets;
    size_t end = text.find(text[quote], quote + 1);
    offsets.emplace_back(name, quote + 1);
    if (end == std::string_view::npos) return offsets;
    at = end + 1;
  }
}

class XmlReader {
 public:
  explicit XmlReader(ReadContext& context) : context_(context) {}

  void read(XmlFile& file, Element* root) {
    if (!parse(file)) return;
    pugi::xml_node top = file.document.document_element();
    base_ = directory_of(file.path);
    set_tags(top);
    collect_include_paths(file, top);
    if (is_inner_element(top.name())) {
      context_.diagnostics.error(
          file.mark(top),
          fmt::format("the file's outermost element is <{}>, not <jube>", top.name()),
          "put <jube> and </jube> around it");
      return;
    }
    convert(file, top, root, 0);
    root->name = "jube";  // JUBE takes any name
  }

 private:
  bool parse(XmlFile& file) {
    if (!expand(file)) return false;
    constexpr unsigned kOptions = pugi::parse_default | pugi::parse_ws_pcdata_single;
    const std::string& text = file.expanded.text;
    pugi::xml_parse_result result =
        file.document.load_buffer(text.data(), text.size(), kOptions, pugi::encoding_utf8);
    if (!result) {
      if (result.status == pugi::status_end_element_mismatch && say_mismatch(file)) return false;
      context_.diagnostics.error(file.at(static_cast<size_t>(result.offset)),
                                 fmt::format("XML syntax: {}", result.description()));
      return false;
    }
    pugi::xml_node top = file.document.document_element();
    for (pugi::xml_node next = top.next_sibling(); next; next = next.next_sibling()) {
      if (next.type() != pugi::node_element) continue;
      context_.diagnostics.error(file.mark(next), "a second outermost element; XML allows one");
      return false;
    }
    return true;
  }

  // Reports the tags that do not match. Returns false if they cannot be determined.
  bool say_mismatch(const XmlFile& file) {
    const std::optional<TagMismatch> found = find_tag_mismatch(file.expanded.text);
    if (!found) return false;
    const Mark close = file.at(found->close_at);
    const Mark open = file.at(found->open_at);
    if (found->open.empty()) {
      context_.diagnostics.error(close, fmt::format("</{}> closes nothing", found->close),
                                 "remove it, or open what it is to close");
    } else if (found->ends) {
      context_.diagnostics.error(open,
                                 fmt::format("<{}> is not closed: the file ends", found->open),
                                 fmt::format("put '</{}>' where it is to end", found->open));
    } else {
      context_.diagnostics.error(
          close, fmt::format("</{}> does not close <{}>", found->close, found->open),
          found->close_is_open ? fmt::format("put '</{}>' before it", found->open)
                               : fmt::format("write '</{}>'", found->open));
      context_.diagnostics.note(open, fmt::format("<{}> is opened here", found->open));
    }
    return true;
  }

  // Replaces entities. Reports what pugixml accepts although it is wrong: bytes that are not UTF-8,
  // and a lone ampersand.
  bool expand(XmlFile& file) {
    const std::string_view text = file.text;
    for (size_t i = 0; i < text.size();) {
      const size_t length = utf8_length(text.substr(i));
      if (length == 0 || text[i] == '\0') {
        context_.diagnostics.error(
            file.lines.at_offset(i),
            fmt::format("byte 0x{:02X} is not UTF-8, so the file cannot be read",
                        static_cast<unsigned char>(text[i])),
            "save the file as UTF-8, or name its encoding in the XML declaration");
        return false;
      }
      i += length;
    }
    const std::optional<XmlProblem> problem = expand_entities(text, &file.expanded);
    if (problem)
      context_.diagnostics.error(file.lines.at_offset(problem->at), problem->message,
                                 problem->hint);
    return !problem;
  }

  // Sets the tags known so far: those from the command line and those that the file itself selects.
  void set_tags(const pugi::xml_node& top) {
    if (!context_.options.tags) return;
    tags_.insert(context_.options.tags->begin(), context_.options.tags->end());
    for (pugi::xml_node selection : top.children("selection")) {
      for (pugi::xml_node tag : selection.children("tag")) {
        for (std::string& name : split_strip(tag.text().get(), ",")) tags_.insert(std::move(name));
      }
    }
  }

  void collect_include_paths(const XmlFile& file, const pugi::xml_node& top) {
    for (pugi::xml_node list : top.children("include-path")) {
      if (is_off(list)) continue;
      if (list.child("include")) {
        add_included_paths(file, list);
        continue;
      }
      for (pugi::xml_node path : list.children("path")) {
        if (!is_off(path)) include_paths_.emplace_back(strip(path.text().get()));
      }
    }
  }

  // Adds paths that come from another file: <include-path><include from="..." path="..."/>.
  void add_included_paths(const XmlFile& file, const pugi::xml_node& list) {
    Element paths;
    convert(file, list, &paths, 0);
    for (const Element& path : paths.children) {
      const Attribute* tag = path.find("tag");
      if (path.name == "path" && (tag == nullptr || !is_off(tag->value.value))) {
        include_paths_.emplace_back(strip(path.text.value));
      }
    }
  }

  // Whether the tags are known and the tag expression excludes its element.
  bool is_off(std::string_view tag) const {
    bool value = true;
    return context_.options.tags && evaluate_tags(tag, tags_, &value) && !value;
  }
  bool is_off(const pugi::xml_node& node) const {
    const pugi::xml_attribute tag = node.attribute("tag");
    return tag && is_off(std::string_view(tag.value()));
  }

  void convert(const XmlFile& file, const pugi::xml_node& node, Element* element, int depth) {
    element->name = element_name(node.name());
    element->mark = file.mark(node);
    if (!context_.count_element(element->mark)) return;
    convert_attributes(file, node, element);
    bool text_open = true;  // an element's text ends at its first child
    for (pugi::xml_node child : node.children()) {
      if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) {
        if (text_open) add_text(file, child, element);
      } else if (child.type() == pugi::node_element) {
        text_open = false;
        convert_child(file, child, element, depth);
      }
    }
  }

  void convert_child(const XmlFile& file, const pugi::xml_node& child, Element* element,
                     int depth) {
    if (depth >= kDeepestElement) {
      context_.diagnostics.error(file.mark(child), "elements are nested more than 200 deep");
      return;
    }
    if (std::string_view(child.name()) == "include") {
      include(file, child, element, depth);
      return;
    }
    Element converted;
    convert(file, child, &converted, depth + 1);
    element->children.push_back(std::move(converted));
  }

  static void add_text(const XmlFile& file, const pugi::xml_node& child, Element* element) {
    std::string_view text = child.value();
    if (!element->text.mark.known() && !strip(text).empty()) {
      auto offset = static_cast<size_t>(std::max<ptrdiff_t>(0, child.offset_debug()));
      const std::string& all = file.expanded.text;
      while (offset < all.size() && is_xml_space(all[offset])) ++offset;
      element->text.mark = file.at(offset);
    }
    element->text.value += text;
  }

  void convert_attributes(const XmlFile& file, const pugi::xml_node& node, Element* element) {
    auto offset = static_cast<size_t>(std::max<ptrdiff_t>(0, node.offset_debug()));
    auto offsets = attribute_offsets(file.expanded.text, offset);
    size_t index = 0;
    for (pugi::xml_attribute a : node.attributes()) {
      Mark name = element->mark, value = element->mark;
      if (index < offsets.size()) {
        name = file.at(offsets[index].first);
        value = file.at(offsets[index].second);
      }
      ++index;
      if (const Attribute* first = element->find(a.name())) {
        context_.diagnostics.error(
            name, fmt::format("attribute '{}' of <{}> is given twice", a.name(), node.name()));
        context_.diagnostics.note(first->name.mark, "the first one is here");
        continue;
      }
      element->attributes.push_back({{a.name(), name}, {a.value(), value}});
    }
  }

  // Handles <include from="FILE" path="XPATH"/>: inserts what the path selects in that file.
  // Without a path it inserts the children of the file's outermost element.
  void include(const XmlFile& file, const pugi::xml_node& node, Element* parent, int depth) {
    if (is_off(node)) return;
    const IncludeRequest request{std::string(strip(node.attribute("from").value())),
                                 std::string(strip(node.attribute("path").value())),
                                 file.mark(node)};
    if (request.name.empty()) {
      context_.diagnostics.error(request.mark, "<include> needs the attribute 'from'");
      return;
    }
    if (!context_.count_element(request.mark)) return;
    std::string path;
    uint32_t number = 0;
    auto directories = include_directories(IncludeKind::set, context_.options, include_paths_,
                                           base_, directory_of(file.path));
    if (!context_.open_include(request, directories, &path, &number)) return;
    if (const XmlFile* included = parsed(number, path)) {
      splice(*included, request, node.attribute("tag").value(), parent, depth);
    }
    context_.open_parts.pop_back();
  }

  // The included file, parsed once however often it is included. Null after an error.
  const XmlFile* parsed(uint32_t number, const std::string& path) {
    auto [known, added] = parsed_.try_emplace(number);
    if (added) {
      auto file = std::make_unique<XmlFile>(number, path, context_.sources.text(number));
      if (parse(*file)) known->second = std::move(file);
    }
    return known->second.get();
  }

  // The nodes of `file` that an XPath selects. Each is looked for once. Throws xpath_exception.
  const std::vector<pugi::xml_node>& selected(const XmlFile& file, const std::string& xpath) {
    const auto key = std::make_pair(&file, xpath);
    const auto known = selected_.find(key);
    if (known != selected_.end()) return known->second;
    std::vector<pugi::xml_node> nodes;
    const pugi::xml_node top = file.document.document_element();
    for (pugi::xpath_node found : top.select_nodes(xpath.c_str())) nodes.push_back(found.node());
    return selected_.emplace(key, std::move(nodes)).first->second;
  }

  void splice(const XmlFile& included, const IncludeRequest& request, const std::string& tag,
              Element* parent, int depth) {
    std::vector<pugi::xml_node> chosen;
    const Mark& place = request.mark;
    const pugi::xml_node top = included.document.document_element();
    if (request.part.empty()) {
      chosen.push_back(top);
    } else {
      try {
        chosen = selected(included, request.part);
      } catch (const pugi::xpath_exception& e) {
        context_.diagnostics.error(
            place, fmt::format("path '{}' is not XPath: {}", request.part, e.what()));
        return;
      }
      if (chosen.empty()) {
        context_.diagnostics.error(
            place, fmt::format("path '{}' selects nothing in '{}'", request.part, included.path));
      }
    }
    if (chosen.size() == 1 && chosen[0] == top && !is_inner_element(top.name())) {
      chosen.assign(top.children().begin(), top.children().end());
    }
    for (const pugi::xml_node& child : chosen) {
      if (child.type() != pugi::node_element) continue;
      size_t before = parent->children.size();
      convert_child(included, child, parent, depth);
      if (tag.empty()) continue;
      for (size_t i = before; i < parent->children.size(); ++i) {
        restrict_to(tag, place, &parent->children[i]);
      }
    }
  }

  // An element from a tagged include is subject to that tag as well.
  static void restrict_to(const std::string& tag, const Mark& place, Element* element) {
    for (Attribute& a : element->attributes) {
      if (a.name.value == "tag") {
        a.value.value = fmt::format("({})+({})", tag, a.value.value);
        return;
      }
    }
    element->attributes.push_back({{"tag", place}, {tag, place}});
  }

  ReadContext& context_;
  std::string base_;
  std::set<std::string> tags_;
  std::vector<std::string> include_paths_;
  std::map<uint32_t, std::unique_ptr<XmlFile>> parsed_;  // null: could not be parsed
  std::map<std::pair<const XmlFile*, std::string>, std::vector<pugi::xml_node>> selected_;
};

}  // namespace

void read_xml(ReadContext& context, uint32_t file, const std::string& path, Document* document) {
  XmlFile xml(file, path, context.sources.text(file));
  XmlReader(context).read(xml, &document->root);
}

}  // namespace tally
