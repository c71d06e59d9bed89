// File sets and substitution sets: which files a workpackage gets, and the exact bytes of those
// that are made from a template. The dry run and the real run call the same functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/path_text.h"
#include "engine/base/status.h"
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
  bool absolute = false;  // a link whose path was given from the root: it stays so, as in JUBE
};

// The files of one copy or link entry, globs resolved in byte order. Sources are relative to the
// directory of the file that defines the entry (rel_path_ref="internal": to `work_dir`). Paths may
// name `variables`: those of the workpackage, with what a prepare command before the entry
// exported; empty: this process's. Fails with JUBE's words when a pattern matches nothing.
Status list_files(const FileCopy& entry, const Lookup& lookup, const std::string& work_dir,
                  std::vector<PlannedFile>* files, const Variables& variables = {});

// A file's bytes and permission bits.
struct FileBytes {
  std::string path;  // relative to the work directory unless absolute
  std::string bytes;
  int mode = 0644;
};
// Gives the present content of a file by its path as FileBytes::path; nothing when there is none.
using FileReader = std::function<std::optional<FileBytes>(const std::string& path)>;
// Reads from a work directory on disk.
FileReader read_from(const std::string& work_dir);

// Applies a step's substitution sets (`sets`: the names used, in order) and returns the files they
// make, in order, each once with its final bytes. Nothing is written. `reader` is asked for the
// input files; what an earlier file of the same call made is seen by the later ones.
Status substitute_files(const Benchmark& benchmark, const std::vector<std::string>& sets,
                        const Lookup& lookup, Evaluator& evaluator, const FileReader& reader,
                        std::vector<FileBytes>* files);

// The same for a work directory that does not exist: input files are looked for where the step's
// file sets would copy them from. An input that only a run can make (by a prepare command, say) is
// an error that says so.
Status plan_substituted_files(const Benchmark& benchmark, const std::vector<std::string>& sets,
                              const Lookup& lookup, Evaluator& evaluator,
                              std::vector<FileBytes>* files);

}  // namespace tally
