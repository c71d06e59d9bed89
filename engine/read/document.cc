#include "engine/read/document.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/read/input_files.h"
#include "engine/read/reader.h"

namespace tally {

namespace {

// The real path if it exists, so that a file is recognized under two different spellings.
std::string identity(const std::string& path) {
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) return path;
  return fmt::format("{}:{}", info.st_dev, info.st_ino);
}

// Makes a valid XML name. A YAML key may hold any character, but an XML name may not.
std::string xml_name(std::string_view name) {
  std::string legal;
  for (char c : name) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
                  static_cast<unsigned char>(c) >= 0x80;
    bool later = (c >= '0' && c <= '9') || c == '-' || c == '.';
    legal += letter || (later && !legal.empty()) ? c : '_';
  }
  return legal.empty() ? "_" : legal;
}

void write_element(const Element& element, size_t depth, std::string* out) {
  std::string indent(depth * 2, ' ');
  const std::string name = xml_name(element.name);
  *out += fmt::format("{}<{}", indent, name);
  for (size_t i = 0; i < element.attributes.size(); ++i) {
    const Attribute& a = element.attributes[i];
    std::string value = a.value.value;
    for (; a.of_list && i + 1 < element.attributes.size(); ++i) {  // XML has no lists
      const Attribute& next = element.attributes[i + 1];
      if (!next.of_list || next.name.value != a.name.value) break;
      value += "," + next.value.value;
    }
    *out += fmt::format(" {}=\"{}\"", xml_name(a.name.value), xml_escaped(value, "&<>\"\n\t\r"));
  }
  if (element.children.empty() && element.text.value.empty()) {
    *out += "/>\n";
    return;
  }
  *out += '>';
  *out += xml_escaped(element.text.value, "&<>\r");
  if (!element.children.empty()) {
    *out += "\n";
    for (const Element& child : element.children) write_element(child, depth + 1, out);
    *out += indent;
  }
  *out += fmt::format("</{}>\n", name);
}

Document read_source(ReadContext& context, uint32_t file, const std::string& path) {
  Document document;
  document.root.name = "jube";
  document.root.mark = {file, 1, 1};
  document.path = path;
  const std::string text = context.sources.text(file);
  document.is_xml = is_xml_file(path, text);
  context.open_parts.push_back({path, ""});
  context.files[path] = file;
  if (strip(text).empty()) {
    context.diagnostics.error({}, fmt::format("'{}' is empty", path),
                              "a benchmark file needs at least a name and a step");
  } else if (document.is_xml) {
    read_xml(context, file, path, &document);
  } else {
    read_yaml(context, file, path, &document);
  }
  return document;
}

}  // namespace

const Attribute* Element::find(const std::string& attribute) const {
  for (const Attribute& a : attributes) {
    if (a.name.value == attribute) return &a;
  }
  return nullptr;
}

std::string Element::get(const std::string& attribute, const std::string& otherwise) const {
  const Attribute* found = find(attribute);
  return found ? found->value.value : otherwise;
}

bool ReadContext::count_element(const Mark& mark) {
  constexpr size_t kMost = 1000000;
  if (++elements == kMost) {
    diagnostics.error(mark, "the file grows to more than a million elements here",
                      "an alias or !include that multiplies itself?");
  }
  return elements < kMost;
}

bool ReadContext::open_include(const IncludeRequest& request,
                               const std::vector<std::string>& directories, std::string* path,
                               uint32_t* file) {
  constexpr size_t kDeepest = 200;
  *path = find_file(request.name, directories, options);
  if (path->empty()) {
    diagnostics.error(request.mark, fmt::format("included file '{}' not found", request.name),
                      "searched in: " + join(directories, ", "));
    return false;
  }
  const OpenPart next{*path, request.part};
  const std::string self = identity(*path);
  for (const OpenPart& open : open_parts) {
    if (open.part != next.part || identity(open.path) != self) continue;
    std::vector<std::string> chain;
    for (const OpenPart& each : open_parts) chain.push_back(each.shown());
    diagnostics.error(request.mark, fmt::format("'{}' includes itself ({} -> {})", next.shown(),
                                                join(chain, " -> "), next.shown()));
    return false;
  }
  if (open_parts.size() >= kDeepest) {
    diagnostics.error(request.mark, fmt::format("includes are nested more than {} deep", kDeepest));
    return false;
  }
  const auto known = files.find(*path);
  if (known != files.end()) {
    *file = known->second;
  } else {
    std::string text;
    if (Status status = load_text(*path, options, NamedBy::file, &text); !status) {
      diagnostics.error(request.mark, status.message());
      return false;
    }
    *file = files[*path] = sources.add(*path, std::move(text));
  }
  open_parts.push_back(next);
  return true;
}

bool is_xml_file(const std::string& path, const std::string& text) {
  std::string lower = to_lower(path);
  auto ends_with = [&](std::string_view ending) {
    return lower.size() >= ending.size() &&
           lower.compare(lower.size() - ending.size(), ending.size(), ending) == 0;
  };
  if (ends_with(".xml")) return true;
  if (ends_with(".yaml") || ends_with(".yml")) return false;
  return starts_with(strip(text), "<");
}

std::vector<std::string> include_directories(IncludeKind kind, const ReadOptions& options,
                                             const std::vector<std::string>& own,
                                             const std::string& base,
                                             const std::string& directory) {
  std::vector<std::string> directories;
  auto add = [&](const std::string& path) {
    if (!contains(directories, path)) {
      directories.push_back(path);
    }
  };
  auto add_all = [&](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) add(path);
  };
  auto add_own = [&] {
    add_all(options.main_paths);
    for (const std::string& path : own) add(join_path(base, expand_path(path)));
  };
  add_all(options.include_path);
  if (kind == IncludeKind::set) add_own();
  add_all(environment_include_path());
  if (kind == IncludeKind::yaml_include) add_own();
  if (!options.main_directory.empty()) add(options.main_directory);
  add(base);
  add(directory);
  return directories;
}

std::vector<std::string> include_paths_of(const Element& root) {
  std::vector<std::string> paths;
  for (const Element& list : root.children) {
    if (list.name != "include-path") continue;
    if (!strip(list.text.value).empty()) paths.emplace_back(strip(list.text.value));
    for (const Element& path : list.children) {
      if (path.name == "path") paths.emplace_back(strip(path.text.value));
    }
  }
  return paths;
}

Document read_document_text(const std::string& name, const std::string& text,
                            const ReadOptions& options, Sources& sources,
                            Diagnostics& diagnostics) {
  ReadContext context{options, sources, diagnostics};
  return read_source(context, sources.add(name, text), name);
}

Document read_document(const std::string& path, const ReadOptions& options, Sources& sources,
                       Diagnostics& diagnostics) {
  Document nothing;
  nothing.root.name = "jube";
  nothing.path = path;
  struct stat info = {};
  if (options.stored.count(path) == 0 && ::stat(path.c_str(), &info) != 0 && errno == ENOENT) {
    diagnostics.error({}, fmt::format("Benchmark configuration file not found: \"{}\"", path));
    return nothing;
  }
  std::string text;
  const NamedBy by = options.main_directory.empty() ? NamedBy::person : NamedBy::file;
  if (Status status = load_text(path, options, by, &text); !status) {
    diagnostics.error({}, status.message());
    return nothing;
  }
  return read_document_text(path, text, options, sources, diagnostics);
}

void set_comment(const std::string& benchmark, const std::string& comment, Document* document) {
  for (Element& element : document->root.children) {
    if (element.name != "benchmark" || strip(element.get("name")) != benchmark) continue;
    Element own;
    own.name = "comment";
    own.text.value = comment;
    auto& children = element.children;
    std::erase_if(children, [](const Element& child) { return child.name == "comment"; });
    children.insert(children.begin(), std::move(own));
  }
}

std::string document_to_xml(const Document& document) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  write_element(document.root, 0, &out);
  return out;
}

}  // namespace tally
