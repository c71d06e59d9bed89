// Shared code of the YAML and the XML reader. Internal to read/.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// An include in a file: the file it names, and the part of that file (an XPath, or the subscripts
// and the expression of an !include). An empty part is the whole file.
struct IncludeRequest {
  std::string name;
  std::string part;
  Mark mark;
};

// A part of a file that is being inserted.
struct OpenPart {
  std::string path;
  std::string part;
  std::string shown() const { return part.empty() ? path : path + ":" + part; }
};

// One call of read_document: its inputs, and the chain of parts being included.
struct ReadContext {
  const ReadOptions& options;
  Sources& sources;
  Diagnostics& diagnostics;
  std::vector<OpenPart> open_parts = {};       // the part being read is last, after its includer
  std::map<std::string, uint32_t> files = {};  // the number in `sources` of each path read so far
  size_t elements = 0;  // number made so far; stops files that multiply themselves

  // Returns false, after reporting one error, if the file is larger than any real benchmark.
  bool count_element(const Mark& mark);
  // Finds and loads the file that `request` names, and adds the part to open_parts. The caller
  // removes it when the part is inserted. A file may include other parts of itself: it is a circle
  // only if the same part of the same file is open. Returns false after reporting what is wrong.
  bool open_include(const IncludeRequest& request, const std::vector<std::string>& directories,
                    std::string* path, uint32_t* file);
};

void read_yaml(ReadContext& context, uint32_t file, const std::string& path, Document* document);
void read_xml(ReadContext& context, uint32_t file, const std::string& path, Document* document);

// Whether a file is XML: decided by its name, or else by its first character.
bool is_xml_file(const std::string& path, const std::string& text);

// The directories to search for includes of the file in `directory`, in JUBE's order. They contain
// the main file's directories and then `own`. `own` comes from the file's include-path element and
// is relative to `base`, the folder of the file that was read first.
enum class IncludeKind { yaml_include, set };  // !include; or from=, init_with=, XML's include
std::vector<std::string> include_directories(IncludeKind kind, const ReadOptions& options,
                                             const std::vector<std::string>& own,
                                             const std::string& base, const std::string& directory);

}  // namespace tally
