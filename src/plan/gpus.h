// The GPUs that a plan can be made for: memory, rates, and how they are usually connected.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"

namespace tally::train {

struct GpuKind {
  std::string name;             // as --plan-device takes it
  double memory = 0;            // bytes that the driver reports as total
  double memory_bandwidth = 0;  // bytes/s, datasheet
  double nvlink = 0;            // bytes/s in each direction to the GPUs of the node, datasheet
  double network = 0;  // bytes/s in each direction to other nodes, of each GPU's share of them
  // Share of the peak rate that GEMMs of a training step reach in 16 bits and in fp32, fitted to
  // measured runs (bench/RESULTS.md, "Plan"); 0: no run was measured.
  double efficiency = 0, fp32_efficiency = 0;
  int capability = 0;  // 90 for compute capability 9.0
};

// "H200", "A100-40GB", in any case, or a size of memory ("64GB", "94.5"), which has no rates.
// Throws UsageError, which names --plan-device.
GpuKind gpu_kind(const std::string& name);
// All names, for messages.
std::vector<std::string> gpu_kind_names();

}  // namespace tally::train
