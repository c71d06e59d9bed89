// The GPUs that a plan can be made for: memory, rates, and how they are usually connected.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"

namespace tally::train {

// The rate at which a GPU sends to the others of a group in its node, bytes/s in each direction.
// Through a switch a group of any size has all of the GPU's NVLink; direct links between each two
// GPUs of a node add up with the members.
struct NodeLinks {
  std::array<double, 3> rates{};  // rates of 2 members, 3, and 4 or more

  static constexpr NodeLinks switched(double rate) { return {{rate, rate, rate}}; }
  static constexpr NodeLinks direct(double rate) { return {{rate, 2 * rate, 3 * rate}}; }
  double of(int members) const;
};

struct GpuKind {
  std::string name;             // --plan-device's word
  double memory = 0;            // bytes that the driver reports as total
  double memory_bandwidth = 0;  // bytes/s, datasheet
  NodeLinks links;              // datasheet
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
