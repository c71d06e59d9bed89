// What the journal knows of the files that results read: what those outside the run's folder were
// before and after a workpackage, and what the others were at its end. It is an interface of its own,
// because only the begin and the end of workpackages and their results need it.
#pragma once

#include <functional>

#include "engine/journal/journal.h"
#include "engine/workpackage/ended_file.h"
#include "engine/workpackage/outside_file.h"

namespace tally {

class OutsideFileTable {
 public:
  virtual ~OutsideFileTable() = default;
  // Replaces what is known for the workpackage. The journal's remove() and reset() clear it.
  virtual Status set_outside(int workpackage, const OutsideFiles& files) = 0;
  virtual Status outside_of(int workpackage, OutsideFiles* files) const = 0;
  // By workpackage.
  virtual Status each_outside(
      const std::function<void(int workpackage, const OutsideFile& file)>& take) const = 0;
  // Replaces what is known of a workpackage's end (Journal::Stored::ended_files). The journal's
  // remove() and reset() clear it.
  virtual Status set_ended(int workpackage, const EndedFiles& ended) = 0;
  // When the run's first workpackage began, in seconds since 1970; 0: none has.
  virtual Status first_start(double* seconds) const = 0;
};

OutsideFileTable& outside_files_of(Journal& journal);
const OutsideFileTable& outside_files_of(const Journal& journal);

}  // namespace tally
