// The raw samples of a run, in its journal: results can be made when the outputs are gone. It is an
// interface of its own, because only results need it.
#pragma once

#include <functional>
#include <vector>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/workpackage/sample.h"

namespace tally {

class SampleTable {
 public:
  virtual ~SampleTable() = default;
  // A sample replaces an earlier one of the same workpackage, analyser, pattern and definition. The journal's
  // reset() and remove() clear those of a workpackage.
  virtual Status set_samples(const std::vector<Sample>& samples) = 0;
  // By workpackage.
  virtual Status each_sample(const std::function<void(const Sample& sample)>& take) const = 0;
  virtual Status has_samples(bool* has) const = 0;
};

// The samples of an open journal.
SampleTable& samples_of(Journal& journal);
const SampleTable& samples_of(const Journal& journal);

}  // namespace tally
