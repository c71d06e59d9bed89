// Reading and checking an input file for a command, with its problems printed.
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
  std::optional<Workflow> workflow;  // nothing when there were errors
  std::vector<std::pair<std::string, std::string>> set;

  const Benchmark* find(const std::string& benchmark) const;
  std::set<std::string> tags() const;
};

// The folder of the running program, in which tally-train lies, too; empty: not known.
std::string program_directory();

// Where the shipped templates lie: $TALLY_TEMPLATES, beside the program (../share/tally/templates),
// the source tree it was built from.
std::vector<std::string> template_directories();

// Reads and checks `path`. What is wrong has been printed when this returns; see Input::workflow.
// `unchecked`: of which documents only the tree is wanted; null: of none.
std::unique_ptr<Input> load_input(const Invocation& invocation, const std::string& path,
                                  const InputArgs& args, bool strict,
                                  bool (*unchecked)(const Element& root) = nullptr);
// The same of a text that stands for the file `name`.
std::unique_ptr<Input> load_input_text(const Invocation& invocation, const std::string& name,
                                       const std::string& text, const InputArgs& args, bool strict);
// The same from what a run stored of its input.
std::unique_ptr<Input> load_stored(const Invocation& invocation, const Journal& journal,
                                   const std::string& run_dir);
// The same from texts, path and text each, of which `file` is the input file. Relative paths of the
// input mean what they meant when the run was started.
std::unique_ptr<Input> load_texts(const Invocation& invocation, const Journal& journal,
                                  const std::string& file,
                                  const std::vector<std::pair<std::string, std::string>>& texts,
                                  const std::string& run_dir);
// Which directory a run in `run_dir` is started in.
void note_directory(const std::string& run_dir, RunRecord* run);
// The folders in which a run's input looks for included files: those of --include-path and of
// $JUBE_INCLUDE_PATH as they are, before those it has.
void note_include_path(const std::vector<std::string>& given, RunRecord* run);

// Whether what goes to this file descriptor is coloured.
bool in_color(const Invocation& invocation, int fd);
// Prints diagnostics to standard error; returns how many.
size_t print_diagnostics(const Invocation& invocation, const Diagnostics& diagnostics,
                         const Sources& sources);
// The same in colour on a terminal.
// "tally: error: ..." on standard error.
void print_error(const Invocation& invocation, const std::string& message,
                 const std::string& hint = {});

// OUTPATH of a benchmark: `given` (-o, relative to here), else the file's own, relative to the
// file, else $JUBE_BENCHMARK_OUTPATH, else `otherwise` beside the file. Where nothing can be written
// beside the file, or the file was installed with the program, relative to here; with `to_read`,
// what lies beside the file if there is nothing here.
std::string outpath_of(const Benchmark& benchmark, const std::string& given, bool to_read = false,
                       const std::string& otherwise = "benchmark_runs");
}  // namespace tally
