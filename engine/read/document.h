// A benchmark file as a tree of elements, in the same form for YAML and XML. Reading it is the
// first stage of the engine.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"

namespace tally {

struct Attribute {
  Text name;   // mark of the key
  Text value;  // after PyYAML 1.1 typing and Python's str(); mark of the value
  // One of a list: the element has an attribute for each value, in their order, with one name.
  bool of_list = false;
};

// One element: in YAML a mapping or scalar under a known key, in XML a tag. `text` is the element's
// own text ("_" in YAML). Children keep the file's order across kinds.
struct Element {
  std::string name;
  Mark mark;
  Text text;
  std::vector<Attribute> attributes;
  std::vector<Element> children;

  const Attribute* find(const std::string& attribute) const;
  std::string get(const std::string& attribute, const std::string& otherwise = {}) const;
};

// A YAML scalar whose text PyYAML changes (`12.10`, `true`, `010`), or a list of such that is
// joined to one text.
struct CoreValue {
  Mark mark;
  std::string pyyaml;   // Python's str() of PyYAML's value
  std::string core;     // Python's str() of YAML 1.2's value (core schema)
  std::string written;  // as it is written
};

struct Document {
  std::vector<CoreValue> core_values;
  Element root;  // name "jube"; its children are benchmark, selection, include-path, check_tags,
                 // sets...
  std::string path;
  bool is_xml = false;
};

struct ReadOptions {
  std::vector<std::string> include_path;  // --include-path; searched before $JUBE_INCLUDE_PATH
  std::vector<std::string> builtin_path;  // folder of the shipped templates/; searched last
  // Path -> text. These texts are used before the disk is read. They are a run's stored input, so
  // that `continue` and `result` do not depend on files that have changed since.
  std::map<std::string, std::string> stored;
  // The folder that relative paths of files refer to. Empty: the current directory.
  std::string directory;
  // For a file from which sets are taken: the folders of the main file's include-path, and the main
  // file's own folder. JUBE searches them for the files that such a file includes in turn.
  std::vector<std::string> main_paths;
  std::string main_directory;
  // The active tags, if they are known. An XML <include> whose tag attribute is false is then not
  // read at all. If they are not known, every include is read and its elements get the attribute.
  std::optional<std::vector<std::string>> tags;
};

// Reads one file and inserts its !include / <include> parts. Problems go to `diagnostics` with
// marks. Returns what could be read, or an empty root if nothing could be read.
Document read_document(const std::string& path, const ReadOptions& options, Sources& sources,
                       Diagnostics& diagnostics);

// Reads a text from memory. `name` replaces the path: in messages, in relative includes, and to
// find the kind of file by its ending.
Document read_document_text(const std::string& name, const std::string& text,
                            const ReadOptions& options, Sources& sources, Diagnostics& diagnostics);

// Gives a benchmark of the document this comment in place of its own. An empty one changes nothing.
void set_comment(const std::string& benchmark, const std::string& comment, Document* document);

// The document as JUBE's XML. A run directory keeps it as configuration.xml.
std::string document_to_xml(const Document& document);

// The directories in the include-path elements of `root`, as written.
std::vector<std::string> include_paths_of(const Element& root);

}  // namespace tally
