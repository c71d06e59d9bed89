// GPUs by their datasheets: one row a kind, which MFU's peak and the planner read.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tally::train {

// Dense rates of a GPU, without sparsity, in TFLOP/s; 0: not in the datasheet. f64 is the rate of
// the tensor cores where they have one.
struct GpuRates {
  double fp8 = 0, f16 = 0, bf16 = 0, tf32 = 0, f32 = 0, f64 = 0;
  // The SM clock at which they hold: f16's rate over the FLOPs of all SMs in a clock. 0: unknown.
  double mhz = 0;
};

// The rate at which a GPU sends to the others of a group that NVLink connects, in each direction.
// Through a switch a group of any size has all of the GPU's NVLink; direct links between each two
// GPUs add up with the members.
struct NodeLinks {
  std::array<double, 3> rates{};  // rates of 2 members, 3, and 4 or more

  static constexpr NodeLinks switched(double rate) { return {{rate, rate, rate}}; }
  static constexpr NodeLinks direct(double rate) { return {{rate, 2 * rate, 3 * rate}}; }
  double of(int members) const;
};

// A plan needs these besides.
struct PlannedGpu {
  std::string_view name;     // --plan-device's word; empty: no plan is made for it by name
  int capability = 0;        // 90 for compute capability 9.0
  double memory_mib = 0;     // nvidia-smi's total
  double bandwidth_gb = 0;   // GB/s of its memory
  NodeLinks links_gb;        // GB/s
  double network_gb = 0;     // GB/s in each direction to other nodes: its share of a usual node's
  int linked_by_switch = 0;  // GPUs of a rack that NVLink connects across nodes; 0: a node's alone
};

struct KnownGpu {
  std::string_view driver;  // part of the name that the driver reports, as whole words
  GpuRates tflops;
  std::string_view source;
  PlannedGpu plan;
};

// A more special name is before a shorter one that it contains.
std::span<const KnownGpu> known_gpus();
// The first row whose name is in `driver`, the name that the driver reports ("NVIDIA H200"); null
// for a GPU that is not in the table, and for CPUs.
const KnownGpu* find_gpu(std::string_view driver);
// The names for which plans can be made, in the order of the table.
std::vector<std::string> plan_gpu_names();

}  // namespace tally::train
