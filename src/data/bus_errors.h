// Reads of mapped files whose bytes are gone. When a file is cut short, or its disk or file server
// fails, a read of the mapping raises SIGBUS, which ends the process without a word.
#pragma once

#include <cstddef>

namespace tally::train {

// While it lives, a read of the mapping whose bytes are gone gives zeros instead of SIGBUS, and
// lost() tells. Whoever reads looks at lost() before using what was read. Destroy it before the
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

// Makes our handler of SIGBUS the one in place; it hands on what lies in no watched mapping. To be
// called again after a library was started that brings its own, as MPI's transports do.
void watch_bus_errors();

}  // namespace tally::train
