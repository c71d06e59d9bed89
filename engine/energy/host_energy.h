// Energy that the kernel knows of: of CPUs, and of boards and GPUs with sensors of their own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

// Energy of CPU packages and their memory through Linux's powercap interface (RAPL).
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

// Energy by the sensors of Linux's hwmon interface: boards, power supplies, AMD's GPUs.
class HwmonEnergy {
 public:
  // `root`: in place of /sys/class/hwmon, for tests.
  explicit HwmonEnergy(std::string root = "/sys/class/hwmon");

  // Finds the sensors and takes the first reading. The status says why there is nothing to read.
  Status start();
  // Takes a reading, `seconds` after the last one. A sensor that cannot be read any more has no
  // number.
  void update(double seconds);

  struct Sensor {
    std::string name;              // "power_meter total", "amdgpu PPT"
    bool counter = false;          // it counts energy; otherwise its power is integrated
    std::optional<double> joules;  // since start()
  };
  std::vector<Sensor> sensors() const;

 private:
  struct Reading {
    Sensor sensor;
    std::string path;
    double last = 0;  // microjoules or microwatts
  };
  Status find_in(const std::string& folder);

  std::string root_;
  std::vector<Reading> readings_;
  std::string unreadable_;  // a sensor that is there and cannot be read
};

}  // namespace tally
