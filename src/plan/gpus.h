// The GPUs that a plan can be made for: memory, rates, and how they are usually connected.
#pragma once

#include <string>

#include "src/device/gpu_table.h"

namespace tally::train {

struct GpuKind {
  std::string name;             // --plan-device's word
  double memory = 0;            // bytes that the driver reports as total
  double memory_bandwidth = 0;  // bytes/s, datasheet
  NodeLinks links;              // bytes/s, datasheet
  int linked_by_switch = 0;     // GPUs of a rack that they connect across nodes; 0: a node's
  double network = 0;  // bytes/s in each direction to other nodes, of each GPU's share of them
  // Share of the peak rate that GEMMs of a training step reach in 16 bits and in fp32, fitted to
  // measured runs (bench/RESULTS.md, "Plan"); 0: no run was measured.
  double efficiency = 0, fp32_efficiency = 0;
  int capability = 0;  // 90 for compute capability 9.0
};

// "H200", "A100-40GB", in any case, or a size of memory ("64GB", "94.5"), which has no rates.
// Throws UsageError, which names --plan-device.
GpuKind gpu_kind(const std::string& name);

}  // namespace tally::train
