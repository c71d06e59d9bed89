// A benchmark file as a tree of elements, the same for YAML and XML: the first stage of the engine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/mark.h"

namespace tally {

struct Attribute {
  Text name;   // mark of the key
  Text value;  // after PyYAML 1.1 typing and Python's str(), mark of the value
};

// One element. In YAML a mapping or scalar under a known key; in XML a tag. `text` is the element's
// own text ("_" in YAML). Children keep file order across kinds.
struct Element {
  std::string name;
  Mark mark;
  Text text;
  std::vector<Attribute> attributes;
  std::vector<Element> children;

  const Attribute* find(const std::string& attribute) const;
  std::string get(const std::string& attribute, const std::string& otherwise = {}) const;
};

enum class Language { jube, tally };  // tally: the file uses a key of Tally's own

struct Document {
  Element root;  // name "jube"; its children are benchmark, selection, include-path, check_tags, sets...
  std::string path;
  bool is_xml = false;
};

struct ReadOptions {
  std::vector<std::string> include_path;  // --include-path, before $JUBE_INCLUDE_PATH
  std::vector<std::string> builtin_path;  // where the shipped templates/ lie; searched last
  // Path -> text, consulted before the disk: a run's stored input, so that `continue` and `result` do
  // not depend on files that changed since.
  std::map<std::string, std::string> stored;
};

// Reads one file with its !include / <include> parts spliced in. Problems go to `diagnostics` with
// marks; returns what could be read (an empty root when nothing could).
Document read_document(const std::string& path, const ReadOptions& options, Sources& sources,
                       Diagnostics& diagnostics);

}  // namespace tally
