// The GPU kernels that this build has. A build that lacks some still runs, but slower, so it
// reports them.
#pragma once

#include <string>
#include <vector>

namespace tally::train {

struct BuildFeatures {
  bool cuda = false;
  std::vector<int> architectures;  // compute capabilities with code: 80, 90, 100
  bool cutlass = false;            // fused GEMMs and fused linear cross-entropy, on Hopper
  bool cudnn = false;              // cuDNN's attention
  bool hopper = false;             // attention and float64 GEMMs for compute capability 9.0
};

BuildFeatures build_features();

// The kernels that `build` lacks and a GPU of this compute capability would use, as text: "fused
// GEMMs (CUTLASS)". Empty where nothing is missing.
std::vector<std::string> missing_kernels(const BuildFeatures& build, int capability);

// The kernels that GPUs of each compute capability use; for --version. "GPU kernels for compute
// capability 8.0 (GEMMs by cuBLASLt, attention cuDNN's), 9.0 (…)". A capability between two has the
// code of the lower one.
std::string describe(const BuildFeatures& build);

}  // namespace tally::train
