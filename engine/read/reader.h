// Shared code of the YAML and the XML reader. Internal to read/.
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
  std::vector<std::string> open_files;  // the file being read is last, after its includer
  size_t elements = 0;                  // number made so far; stops files that multiply themselves

  // Returns false, after reporting one error, if the file is larger than any real benchmark.
  bool count_element(const Mark& mark);
  // Loads the file that is included at `mark`. Returns false after reporting what is wrong.
  bool load_include(const std::string& name, const std::vector<std::string>& directories,
                    const Mark& mark, std::string* path, uint32_t* file);
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
