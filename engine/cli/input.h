// The first act of commands: reads an input file or opens a run, and prints what is wrong with it.
#pragma once

#include <memory>
#include <string>

#include "engine/base/diagnostics.h"
#include "engine/run/input.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"

namespace tally {

// Reads and checks `path`. Problems have been printed when this returns; see Input::workflow.
std::shared_ptr<Input> load_input(const Settings& settings, const std::string& path,
                                  const InputArgs& args);
// Reads and checks a text that stands for the file `name`.
std::shared_ptr<Input> load_input_text(const Settings& settings, const std::string& name,
                                       const std::string& text, const InputArgs& args);

// Opens a run with the input that it was started with. Null, after printing why, if that cannot be
// read.
std::unique_ptr<Run> open_run(const Settings& settings, const RunDirectory& directory,
                              Run::Access access);
// Opens a run for its results, which are made with the definitions that the run keeps. `update`: an
// input file whose patterns, analysers and results replace them. Empty: none.
std::unique_ptr<Run> open_results(const Settings& settings, const RunDirectory& directory,
                                  const std::string& update = {},
                                  const InputArgs& update_input = {});
// Reads the definitions of an open run's results. Returns false, after printing why, if they cannot
// be read.
bool read_definitions(const Settings& settings, Run* run);

// Whether output to this file descriptor is coloured.
bool in_color(const Settings& settings, int fd);
// Prints diagnostics to standard error, or adds them to settings.problems, and returns their
// number.
size_t print_diagnostics(const Settings& settings, const Diagnostics& diagnostics,
                         const Sources& sources);
// Prints "tally: error: ..." to standard error, in colour on a terminal; or adds it to
// settings.problems.
void print_error(const Settings& settings, const std::string& message,
                 const std::string& hint = {});
void print_error(const Settings& settings, const Status& status);

}  // namespace tally
