// Turns a Document into a Workflow: checks keys, values and names, applies tags and resolves sets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"
#include "engine/workflow/workflow.h"

namespace tally {

// The text that a plain YAML value (12.10, true, 010) has in a file of Tally's language.
enum class PlainText {
  as_written,
  as_core_value,  // 12.1, True, 10: in runs that earlier versions began
};

struct CheckOptions {
  std::vector<std::string> tags;                         // -t
  std::vector<std::string> only, exclude;                // --only-bench, --not-bench
  std::vector<std::pair<std::string, std::string>> set;  // --set name=value: replaces a parameter
  ReadOptions read;                                      // for files named by from= and init_with=
  bool strict = false;          // unknown keys are errors even in a file of plain JUBE language
  bool called_as_jube = false;  // JUBE's rules for every file
  const StepKinds* kinds = &plain_kinds();  // for the workflow's steps; must outlive it
  bool all_platforms = false;               // also those that other tags choose
  bool stored = false;       // a run's stored input, possibly checked in another environment
  bool stored_tags = false;  // nobody has given the tags now
  PlainText plain_text = PlainText::as_written;
  // `only` names the benchmark of a run, whatever the file selects.
  bool of_run = false;
  // The run whose results the document defines anew (-u). Its steps and sets count, and of the
  // document only patterns, analysers and results.
  const Benchmark* run = nullptr;
};

// Checks `document` and builds the workflow. Reports all problems with their marks. Returns nothing
// if there were errors.
std::optional<Workflow> check_document(const Document& document, const CheckOptions& options,
                                       Sources& sources, Diagnostics& diagnostics);

}  // namespace tally
