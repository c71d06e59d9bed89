// File sets and substitution sets. They determine which files a workpackage gets, and the exact
// bytes of the files that are made from a template. The dry run and the real run call the same
// functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/base/variables.h"
#include "engine/expand/evaluator.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/values.h"

namespace tally {

// One file or folder that a file set puts into a work directory.
struct PlannedFile {
  std::string source;  // absolute
  std::string target;  // relative to the work directory
  bool link = false;
  bool absolute = false;  // a link whose path was given as absolute stays absolute, as in JUBE
};

// Lists the files of one copy or link entry. Globs are resolved in byte order. Sources are relative
// to the directory of the file that defines the entry, or to `work_dir` with
// rel_path_ref="internal". Paths may name `variables`: those of the workpackage, including the
// exports of a prepare command before the entry. Empty `variables`: those of this process. Fails
// with JUBE's message when a pattern matches nothing.
Status list_files(const FileCopy& entry, const Lookup& lookup, const std::string& work_dir,
                  std::vector<PlannedFile>* files, const Variables& variables = {});

// A file's bytes and permission bits.
struct FileBytes {
  std::string path;  // relative to the work directory unless absolute
  std::string bytes;
  int mode = 0644;
};
// Gets the current content of the file at `path` (as in FileBytes::path). `file` stays empty when
// there is no such file. An error status means that the host could not read it.
using FileReader = std::function<Status(const std::string& path, std::optional<FileBytes>* file)>;
// The path to which all links lead, also one at the end to a file that is not there yet.
std::string path_behind_all_links(const std::string& path);
// The file that is written for FileBytes::path. A link at its end is followed within the work
// directory. One that leads out of it is replaced: behind it may be an input.
std::string place_of_substituted(const std::string& path, const std::string& work_dir);
// Reads from a work directory on disk.
FileReader read_from(const std::string& work_dir);

// The substitution sets of these names, in order. Other kinds of set are passed over.
std::vector<const SubstituteSet*> substitute_sets(const Benchmark& benchmark,
                                                  const std::vector<std::string>& names);
// Applies a step's substitution sets, in order, and returns the files they make, in order, each
// once with its final bytes. It writes no file. `reader` reads the input files. Later files see the
// output of earlier files in the same call.
Status substitute_files(const std::vector<const SubstituteSet*>& sets, const Lookup& lookup,
                        Evaluator& evaluator, const FileReader& reader,
                        std::vector<FileBytes>* files);

// Plans it for a work directory that does not exist yet. Input files are read from where the
// step's file sets would copy them from. Fails when an input can only be made by a run, for example
// by a prepare command; the message says so.
Status plan_substituted_files(const Benchmark& benchmark, const std::vector<std::string>& sets,
                              const Lookup& lookup, Evaluator& evaluator,
                              std::vector<FileBytes>* files);

// Takes the permissions of group and others from the files that have the value of one of these
// secrets ("NAME=value").
void keep_secrets(const std::vector<std::string>& secrets, std::vector<FileBytes>* files);

}  // namespace tally
