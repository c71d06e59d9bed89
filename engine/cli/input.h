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

// Where the shipped templates lie: $TALLY_TEMPLATES, beside the program (../share/tally/templates),
// the source tree it was built from.
std::vector<std::string> template_directories();

// Reads and checks `path`. What is wrong has been printed when this returns; see Input::workflow.
std::unique_ptr<Input> load_input(const Invocation& invocation, const std::string& path,
                                  const InputArgs& args, bool strict);
// The same from what a run stored of its input.
std::unique_ptr<Input> load_stored(const Invocation& invocation, const Journal& journal,
                                   const std::string& run_dir);
// The same from texts, path and text each, of which `file` is the input file. Relative paths of the
// input mean what they meant when the run was started.
std::unique_ptr<Input> load_texts(const Invocation& invocation, const Journal& journal,
                                  const std::string& file,
                                  const std::vector<std::pair<std::string, std::string>>& texts,
                                  const std::string& run_dir);
// Keeps with the run which directory it was started in.
Status keep_directory(const std::string& run_dir, Journal& journal);
// The folders in which a run's input looks for included files, kept with the run: those of
// --include-path and of $JUBE_INCLUDE_PATH as they were.
Status keep_include_path(const std::vector<std::string>& given, Journal& journal);
std::vector<std::string> kept_include_path(const Journal& journal);

// Prints diagnostics to standard error, in colour on a terminal. Only those not printed yet when
// called again with the count it returned.
size_t print_diagnostics(const Diagnostics& diagnostics, const Sources& sources);
// "tally: error: ..." on standard error.
void print_error(const Invocation& invocation, const std::string& message,
                 const std::string& hint = {});

// OUTPATH of a benchmark: `given` (-o, relative to here), else the file's own, relative to the
// file, else $JUBE_BENCHMARK_OUTPATH, else benchmark_runs beside the file.
std::string outpath_of(const Benchmark& benchmark, const std::string& given);
// What the built-ins of a run say.
RunInfo run_info(const Benchmark& benchmark, int id, const std::string& run_dir,
                 const std::string& start);

}  // namespace tally
