// How a build reports the GPU kernels that it lacks.
#include "src/ops/build_features.h"

#include <doctest/doctest.h>

using namespace tally::train;

TEST_CASE("a build names the kernels that a GPU would use and it lacks") {
  BuildFeatures whole;
  whole.cuda = whole.cutlass = whole.cudnn = whole.hopper = true;
  whole.architectures = {80, 90};
  using Names = std::vector<std::string>;
  for (const int capability : {75, 80, 90, 100}) CHECK(missing_kernels(whole, capability).empty());
  BuildFeatures bare;
  bare.cuda = true;
  CHECK(missing_kernels(bare, 75).empty());
  CHECK(missing_kernels(bare, 80) == Names{"cuDNN's attention"});
  CHECK(missing_kernels(bare, 90) ==
        Names{"attention for Hopper", "fused GEMMs (CUTLASS)", "cuDNN's attention"});
  BuildFeatures without_cutlass = whole;
  without_cutlass.cutlass = false;
  CHECK(missing_kernels(without_cutlass, 80).empty());
  CHECK(missing_kernels(without_cutlass, 90) == Names{"fused GEMMs (CUTLASS)"});
  // Without CUDA no GPU is used at all, which is another message.
  CHECK(missing_kernels(BuildFeatures(), 90).empty());
  CHECK(describe(BuildFeatures()) == "GPU kernels: none, this build runs on the CPU only");
  CHECK(describe(without_cutlass) ==
        "GPU kernels for compute capability 8.0 (GEMMs by cuBLASLt, attention cuDNN's), 9.0 (GEMMs "
        "by cuBLASLt, attention our own and cuDNN's)");
  whole.architectures = {80, 90, 100, 120};
  CHECK(describe(whole) ==
        "GPU kernels for compute capability 8.0 (GEMMs by cuBLASLt, attention cuDNN's), 9.0 (GEMMs "
        "by cuBLASLt and fused by CUTLASS, attention our own and cuDNN's), 10.0, 12.0 (GEMMs by "
        "cuBLASLt, attention cuDNN's)");
}
