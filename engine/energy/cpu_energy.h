// Energy of CPU packages and their memory through Linux's powercap interface (RAPL).
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

class CpuEnergy {
 public:
  // `root`: in place of /sys/class/powercap, for tests.
  explicit CpuEnergy(std::string root = "/sys/class/powercap");

  // Finds the domains and takes the first reading. The status says why there is nothing to read.
  Status start();
  // Takes a reading. Call it at least once a minute: a counter wraps around after some minutes at
  // full power. The status says which domain cannot be read any more.
  Status update();

  struct Domain {
    std::string name;   // "package-0", "package-0 dram"
    double joules = 0;  // since start()
  };
  std::vector<Domain> domains() const;

 private:
  struct Counter {
    Domain domain;
    std::string path;
    double last = 0, range = 0;  // microjoules
  };
  std::string root_;
  std::vector<Counter> counters_;
};

}  // namespace tally
