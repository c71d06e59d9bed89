// The record of a run of several processes that a failure ends.
#pragma once

#include <memory>

#include "src/measure/record.h"
#include "src/train/run/world.h"

namespace tally::train {

// Keeps, on rank 0, what is known of the run. It becomes the record when a failure ends the
// processes, whichever rank failed and whatever this process does then: a thread of its own writes
// it. Does nothing on other ranks, without --record, and in a run of one process, which writes its
// record itself.
class FailureRecord {
 public:
  // Lets a failure write the record from now on. `world` outlives it.
  FailureRecord(World& world, const Record& record);

  // Takes what `record` has by now. Its lists have only grown since the last call, and only what
  // was added is copied.
  void update(const Record& record);

 private:
  World& world_;
  std::shared_ptr<Record> known_;  // null: no record is to be written
};

}  // namespace tally::train
