// Reads of mapped files whose bytes are gone. When a file is truncated, or its disk or file server
// fails, a read of the mapping raises SIGBUS, which ends the process without a message.
#pragma once

#include <cstddef>

namespace tally::train {

// While it lives, reads of lost bytes of the mapping return zeros instead of raising SIGBUS, and
// lost() returns true. The reader checks lost() before it uses what was read. Destroy it before the
// mapping. Safe for several threads.
class WatchedMapping {
 public:
  WatchedMapping(const char* data, size_t bytes);
  ~WatchedMapping();
  WatchedMapping(const WatchedMapping&) = delete;
  WatchedMapping& operator=(const WatchedMapping&) = delete;
  bool lost() const;

 private:
  struct Node* node_;
};

// Installs our SIGBUS handler, which passes on faults outside the watched mappings. Call it again
// after starting a library that installs its own, as MPI's transports do.
void watch_bus_errors();

}  // namespace tally::train
