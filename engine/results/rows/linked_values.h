// Which values of a step's rows were read through links to the work of earlier steps. Private to
// results/.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

// A file that is read through a link to the work of other steps.
struct LinkedFile {
  std::set<std::string> steps;     // that the path names
  std::set<std::string> patterns;  // that it is searched for
  std::set<std::string> alone;     // of these, those that no file of the step itself may give
};

// Of an analyser. JUBE's rows say nothing of where a value comes from, so that it has none in JUBE's
// files.
class LinkedFiles {
 public:
  LinkedFiles(const Benchmark& benchmark, const Analyser& analyser);
  bool empty() const { return files_.empty(); }
  // Those that `analyse`, one of the analyser's, reads.
  const std::vector<LinkedFile>& of(const Analyse* analyse) const;

 private:
  std::map<const Analyse*, std::vector<LinkedFile>> files_;
};

}  // namespace tally
