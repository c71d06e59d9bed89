// What the YAML and the XML reader share. Internal to read/.
#pragma once

#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"

namespace tally {

// One call of read_document: its inputs, and the chain of files being included.
struct ReadContext {
  const ReadOptions& options;
  Sources& sources;
  Diagnostics& diagnostics;
  std::vector<std::string> open_files;  // the file being read last, its includer before it
  size_t elements = 0;                  // made so far, against files that multiply themselves

  // False, after one error, when the file has grown beyond any real benchmark.
  bool count_element(const Mark& mark);
  // Loads an included file for the place `mark`; false after reporting what is wrong.
  bool load_include(const std::string& name, const std::vector<std::string>& directories,
                    const Mark& mark, std::string* path, uint32_t* file);
};

void read_yaml(ReadContext& context, uint32_t file, const std::string& path, Document* document);
void read_xml(ReadContext& context, uint32_t file, const std::string& path, Document* document);

// Whether a file is XML: by its name, else by its first character.
bool is_xml_file(const std::string& path, const std::string& text);

// Directories for the includes of the file in `directory`, in JUBE's order: those of the main file,
// then `own`, which are those of the file's include-path element, relative to `base`, the folder of
// the file that was read first.
enum class IncludeKind { yaml_include, set };  // !include; or from=, init_with=, XML's include
std::vector<std::string> include_directories(IncludeKind kind, const ReadOptions& options,
                                             const std::vector<std::string>& own,
                                             const std::string& base, const std::string& directory);

}  // namespace tally
