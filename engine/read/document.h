// A benchmark file as a tree of elements, the same for YAML and XML: the first stage of the engine.
#pragma once

#include <map>
#include <optional>
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

// A plain YAML scalar that YAML 1.2 reads in another way than PyYAML (`yes`, `010`, `12:30:00`).
struct CoreValue {
  Mark mark;
  std::string pyyaml, core;  // Python's str() of the one; what it is in YAML 1.2's core schema
};

struct Document {
  std::vector<CoreValue> core_values;
  Element root;  // name "jube"; its children are benchmark, selection, include-path, check_tags,
                 // sets...
  std::string path;
  bool is_xml = false;
};

struct ReadOptions {
  std::vector<std::string> include_path;  // --include-path, before $JUBE_INCLUDE_PATH
  std::vector<std::string> builtin_path;  // where the shipped templates/ lie; searched last
  // Path -> text, consulted before the disk: a run's stored input, so that `continue` and `result`
  // do not depend on files that changed since.
  std::map<std::string, std::string> stored;
  // Where relative paths of files were given; empty: the current directory.
  std::string directory;
  // For a file that sets are taken from: the folders of the main file's include-path, and the main
  // file's own. JUBE looks there for whatever such a file includes in turn.
  std::vector<std::string> main_paths;
  std::string main_directory;
  // The tags set, where known: an XML <include> whose tag attribute is false is then not read at
  // all. Without them every include is read, and its elements get the attribute.
  std::optional<std::vector<std::string>> tags;
};

// Reads one file with its !include / <include> parts spliced in. Problems go to `diagnostics` with
// marks; returns what could be read (an empty root when nothing could).
Document read_document(const std::string& path, const ReadOptions& options, Sources& sources,
                       Diagnostics& diagnostics);

// The same from memory; `name` stands for the path in messages, in relative includes and when the
// kind of file is told from its ending.
Document read_document_text(const std::string& name, const std::string& text,
                            const ReadOptions& options, Sources& sources, Diagnostics& diagnostics);

// The document as JUBE's XML, as it is kept in a run directory (configuration.xml).
std::string document_to_xml(const Document& document);

// The directories of the include-path elements of `root`, as written.
std::vector<std::string> include_paths_of(const Element& root);

}  // namespace tally
