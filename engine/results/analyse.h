// Reads the output of finished workpackages with the benchmark's patterns.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/diagnostics.h"
#include "engine/expand/evaluator.h"
#include "engine/results/records.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

// A workpackage as results/ sees it.
struct WorkpackageView {
  int id = 0;
  std::string step;
  int iteration = 0, cycle = 0;
  std::vector<int> parents;  // ids
  std::string work_dir;      // absolute
  // Its own folder, absolute, where it has a work_dir beside that: a run step's output and its
  // job's files are there, and are looked for there first. Empty: there is none.
  std::string own_dir;
  bool finished = false;  // only finished workpackages are analysed
  State state = State::done;
  bool reused = false;  // done elsewhere: a set-up whose work was taken over
  // Everything a result may show: parameters with their types, and the jube_* built-ins.
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<std::pair<std::string, ValueType>> types;
  std::vector<std::pair<std::string, std::string>> units;
  std::vector<std::string> notes;
  // A log given by hand (`tally result --logs`): it is read in place of the first file that the
  // step's `analyse` names. The other files are then looked for beside it, if it bears that file's
  // name, and are missing without a word.
  std::string log;
};

// What the files of one workpackage yielded, as JUBE's analyse.xml has it: with `reduce`, of all
// workpackages that differ in their iteration only, under the lowest id.
struct WorkpackageResult {
  int id = 0;
  std::string step;
  std::vector<std::pair<std::string, Value>> values;  // patterns and their statistics, in order
};

// The records of one analyser, in the order of workpackage ids. A record belongs to a workpackage
// of an analysed step that no other analysed workpackage depends on; what its parents' files
// yielded is merged in, its own values first. With `reduce`, workpackages that differ in their
// iteration only make one record, shown under the lowest id. Files that a glob names are read in
// natural order (f2 before f10). Problems ("cannot be represented as a int", a file that is not
// there, a pattern that cannot be read) go to `diagnostics`, each once with a count. `each`, when
// given, gets what every workpackage's own files yielded.
Records analyse(const Benchmark& benchmark, const Analyser& analyser,
                const std::vector<WorkpackageView>& workpackages, Evaluator& evaluator,
                Diagnostics& diagnostics, std::vector<WorkpackageResult>* each = nullptr);

// The text of jube_pat_int, _fp, _wrd, _nint, _nfp, _nwrd and _bl; nothing for another name.
const std::string* pattern_building_block(std::string_view name);

// Reports patterns that Python's `re` could not compile. Patterns that hold $parameters are left to
// analyse().
void check_patterns(const Benchmark& benchmark, Diagnostics& diagnostics);

// f2 before f10: digits compare as numbers.
bool natural_less(std::string_view a, std::string_view b);

}  // namespace tally
