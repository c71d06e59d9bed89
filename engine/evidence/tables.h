// The values that an archive says a run measured, made from the files of the run's folder alone. The same
// function makes it for the archive and when the archive is verified.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/base/diagnostics.h"
#include "engine/base/status.h"
#include "engine/expand/evaluator.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"

namespace tally {

// Opens the run in a folder out of an archive, to read it and to execute nothing.
Status open_archived(const Settings& settings, const std::string& folder,
                     std::unique_ptr<Run>* out);

// Texts by name: "tables/NAME.dat" as `result` writes it, "tables/tables.json" with every number in
// full precision, "samples.csv" with what each workpackage printed.
using EvidenceTexts = std::map<std::string, std::string>;

// The texts, and what `result` says of the run beside its tables.
struct Evidence {
  EvidenceTexts texts;
  std::string unfinished;
  Diagnostics said;
};
// `version`: of the program that made the archive.
Status make_evidence(const Run& run, const std::string& version, Evaluator& evaluator,
                     Evidence* out);

// The settings with which archives are read: nothing that they name is executed.
Settings reading(const Settings& settings);

}  // namespace tally
