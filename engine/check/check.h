// From a Document to a Workflow: keys, values and names are checked, tags applied, sets resolved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/read/document.h"
#include "engine/workflow/workflow.h"

namespace tally {

struct CheckOptions {
  std::vector<std::string> tags;                         // -t
  std::vector<std::string> only, exclude;                // --only-bench, --not-bench
  std::vector<std::pair<std::string, std::string>> set;  // --set name=value: replaces a parameter
  ReadOptions read;                                      // for files named by from= and init_with=
  bool strict = false;   // unknown keys are errors even in a file of plain JUBE language
  bool as_jube = false;  // called by the name jube: JUBE's rules for every file
  const StepKinds* kinds = &plain_kinds();  // of the workflow's steps; must outlive it
  bool stored = false;  // a run's own input: the environment it was checked in may be another one
};

// Checks `document` and builds the workflow. All problems are reported, with marks. Returns nothing
// when there were errors.
std::optional<Workflow> check_document(const Document& document, const CheckOptions& options,
                                       Sources& sources, Diagnostics& diagnostics);

}  // namespace tally
