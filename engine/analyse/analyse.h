// Reads the output of finished workpackages with the benchmark's patterns.
#pragma once

#include <string>
#include <vector>

#include "engine/analyse/records.h"
#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/workflow/workflow.h"

namespace tally {

// A workpackage as analyse/ and report/ see it.
struct PackageView {
  int id = 0;
  std::string step;
  int iteration = 0, cycle = 0;
  std::vector<int> parents;       // ids
  std::string work_dir;           // absolute
  bool finished = false;          // only finished packages are analysed
  // Everything a result may show: parameters with their types, and the jube_* built-ins.
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<std::pair<std::string, ValueType>> types;
  std::vector<std::pair<std::string, std::string>> units;
  std::vector<std::string> notes;
};

// The records of one analyser. Warnings ("cannot be represented as a int") go to `diagnostics`.
Records analyse(const Benchmark& benchmark, const Analyser& analyser,
                const std::vector<PackageView>& packages, Evaluator& evaluator,
                Diagnostics& diagnostics);

// One file against one list of patterns: what a single workpackage's file yields before reduction.
// Memory does not grow with the file's size.
struct Matches {
  std::vector<std::vector<Value>> values;  // per pattern, in order of appearance
};

}  // namespace tally
