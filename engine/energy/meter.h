// Measures the energy that the machine uses while a program runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

struct GpuUse {
  size_t gpu = 0;
  std::string name;
  std::optional<double> joules;          // by the total energy counter
  std::optional<double> sampled_joules;  // the integral of sampled power
  std::optional<double> limit_watts;
  uint64_t throttle = 0;              // all reasons that were seen
  std::optional<double> mean_sm_mhz;  // of its SMs' clock
};
struct CpuUse {
  std::string name;
  double joules = 0;
};
struct SensorUse {
  std::string name;
  bool counter = false;          // it counts energy; otherwise its power was sampled
  std::optional<double> joules;  // empty: it could not be read any more
};
struct EnergyUse {
  double seconds = 0;
  std::vector<GpuUse> gpus;
  std::vector<CpuUse> cpus;
  std::vector<SensorUse> sensors;
  std::string no_gpu, no_cpu, no_sensor;  // why there are no numbers; empty: there are
};

struct MeterOptions {
  std::string powercap = "/sys/class/powercap";
  std::string hwmon = "/sys/class/hwmon";
  double interval = 0.1;  // seconds between samples of power
};

// Runs a program with this process's standard input, output and environment, and measures until it
// ends. *exit_code: its exit code, or 128 + signal. The status says why it could not be started.
Status measure_command(const std::vector<std::string>& command, const MeterOptions& options,
                       EnergyUse* use, int* exit_code);

// One line for each device, for people and for patterns:
//   energy: GPU 0 (NVIDIA H100): 1234.5 J, 308.6 W, limit 700 W, clock 1410 MHz, throttling: none
//   energy: CPU package-0: 480.2 J, 120.1 W
//   energy: sensor power_meter total: 2210.0 J, 552.5 W, from sampled power
//   energy: CPU: not available: '...' cannot be read: only root may
std::string energy_lines(const EnergyUse& use);
std::string energy_json(const EnergyUse& use, const std::vector<std::string>& command,
                        int exit_code);

}  // namespace tally
