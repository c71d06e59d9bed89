// An input file that was read and checked: one that a person names, or the one that a run keeps.
// No function here prints: problems are among the diagnostics.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/read/document.h"
#include "engine/run/settings.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Options for reading an input file.
struct InputArgs {
  std::vector<std::string> tags;
  std::vector<std::string> only, exclude;
  std::vector<std::string> include_path;
  std::vector<std::string> set;  // name=value
  bool all_platforms = false;    // those that other tags choose are checked, too
  // Documents of which only the tree is needed. Null: there are none.
  bool (*unchecked)(const Element& root) = nullptr;
};

struct Input {
  std::string path;  // as it was given
  Sources sources;
  Diagnostics diagnostics;
  Document document;
  std::optional<Workflow> workflow;  // empty when there were errors
  std::vector<std::pair<std::string, std::string>> set;
  // The additions of an update: the number of its first file in `sources`, and the tags that it is
  // read with.
  uint32_t update_file = 0;
  std::vector<std::string> update_tags;

  const Benchmark* find(const std::string& benchmark) const;
  std::set<std::string> tags() const;
};

// The folders that may hold the shipped templates: $TALLY_TEMPLATES, ../share/tally/templates
// beside the program, and the source tree it was built from. A static program that finds none of
// them writes those that it carries to the user's cache. *problem: why it cannot.
std::vector<std::string> template_directories(Status* problem);

// Reads and checks `path`. An error says that there is no such file, or what is wrong with `args`.
Status read_input(const Settings& settings, const std::string& path, const InputArgs& args,
                  Input* input);
// Reads a text that stands for the file `name`, as read_input().
Status read_input_text(const Settings& settings, const std::string& name, const std::string& text,
                       const InputArgs& args, Input* input);
// Reads the input that a run in `run_dir` has stored. Its warnings were reported when the
// run was started, and are left out.
Status read_stored_input(const Settings& settings, const Journal& journal,
                         const std::string& run_dir, Input* input);
// Reads the file of -u. *input has what the run has stored. The patterns, analysers and
// results of the file take the place of those. It is read with the run's tags, those of earlier
// updates, and those of `args`.
Status read_update(const Settings& settings, const Journal& journal, const std::string& file,
                   const InputArgs& args, Input* input);
// Reads the update that the run in `run_dir` has kept, as read_update().
void read_kept_update(const Settings& settings, const RunRecord& run, const Journal::Update& update,
                      const std::string& run_dir, Input* input);

// The first file of the input that the run in `run_dir` has stored which has another text today, as
// the input names it. Empty: there is none. Files that are gone and shipped templates do not count.
std::string changed_source(const Input& input, const RunRecord& run, const std::string& run_dir);

// The tags of -t. "a,b" is the old form of two tags.
std::vector<std::string> split_tags(const std::vector<std::string>& given);
// Records the directory in which a run in `run_dir` is started.
void note_directory(const std::string& run_dir, RunRecord* run);
// Records the folders that a run's input searches for included files. The current folders of
// --include-path and $JUBE_INCLUDE_PATH come before those already recorded.
void note_include_path(const std::vector<std::string>& given, RunRecord* run);

}  // namespace tally
