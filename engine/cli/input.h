// Reads and checks an input file for a command, and prints its problems.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/check/check.h"
#include "engine/cli/commands.h"
#include "engine/expand/expand.h"
#include "engine/journal/journal.h"
#include "engine/read/document.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct Input {
  Sources sources;
  Diagnostics diagnostics;
  Document document;
  std::optional<Workflow> workflow;  // empty when there were errors
  std::vector<std::pair<std::string, std::string>> set;
  // Of an update: the number of its first file in `sources`, and the tags that it is read with.
  uint32_t update_file = 0;
  std::vector<std::string> update_tags;

  const Benchmark* find(const std::string& benchmark) const;
  std::set<std::string> tags() const;
};

// The folder of the running program, which also holds tally-train. Empty: unknown.
std::string program_directory();

// The folders that may hold the shipped templates: $TALLY_TEMPLATES, ../share/tally/templates
// beside the program, and the source tree it was built from. A static program that finds none of
// them writes those that it carries to the user's cache.
std::vector<std::string> template_directories();

// Reads and checks `path`. Problems have been printed when this returns; see Input::workflow.
// `unchecked`: documents of which only the tree is needed. Null: there are none.
std::unique_ptr<Input> load_input(const Settings& settings, const std::string& path,
                                  const InputArgs& args, bool strict,
                                  bool (*unchecked)(const Element& root) = nullptr);
// Does the same for a text that stands for the file `name`.
std::unique_ptr<Input> load_input_text(const Settings& settings, const std::string& name,
                                       const std::string& text, const InputArgs& args, bool strict);
// Does the same for the input that a run has stored.
std::unique_ptr<Input> load_stored(const Settings& settings, const Journal& journal,
                                   const std::string& run_dir);
// Does the same for the file of -u: the patterns, analysers and results are those of that file, and
// all else is what the run has stored. It is read with the run's tags, those of earlier updates, and
// those of `args`.
std::unique_ptr<Input> load_update(const Settings& settings, const Journal& journal,
                                   const std::string& file, const InputArgs& args,
                                   const std::string& run_dir);
// Does the same for the update that the run has kept, or for the run's own input if there is none.
std::unique_ptr<Input> load_kept(const Settings& settings, const Journal& journal,
                                 const std::string& run_dir);
// The tags of -t. "a,b" is the old form of two tags.
std::vector<std::string> split_tags(const std::vector<std::string>& given);
// Records the directory in which a run in `run_dir` is started.
void note_directory(const std::string& run_dir, RunRecord* run);
// Records the folders that a run's input searches for included files. The current folders of
// --include-path and $JUBE_INCLUDE_PATH come before those already recorded.
void note_include_path(const std::vector<std::string>& given, RunRecord* run);

// Whether output to this file descriptor is coloured.
bool in_color(const Settings& settings, int fd);
// Prints diagnostics to standard error, or adds them to the settings's problems, and returns their
// number.
size_t print_diagnostics(const Settings& settings, const Diagnostics& diagnostics,
                         const Sources& sources);
// Prints "tally: error: ..." to standard error, in colour on a terminal; or adds it to the
// settings's problems.
void print_error(const Settings& settings, const std::string& message,
                 const std::string& hint = {});

// Returns OUTPATH of a benchmark: `given` (-o, relative to the current directory), or else the
// file's own, relative to the file, or else $JUBE_BENCHMARK_OUTPATH, or else `otherwise` beside the
// file. If the folder of the file cannot be written, or the file was installed with the program,
// the path is relative to the current directory. With `to_read` the folder beside the file is used
// if there is none in the current directory.
std::string outpath_of(const Benchmark& benchmark, const std::string& given, bool to_read = false,
                       const std::string& otherwise = "benchmark_runs");
}  // namespace tally
