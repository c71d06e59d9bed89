#include "src/ops/build_features.h"

namespace tally::train {

BuildFeatures build_features() {
  BuildFeatures f;
#ifdef TALLY_WITH_CUDA
  f.cuda = true;
  f.architectures = {TALLY_CUDA_ARCHITECTURES_LIST};
  f.cutlass = TALLY_HAS_CUTLASS;
  f.cudnn = TALLY_HAS_CUDNN;
  f.hopper = TALLY_HAS_HOPPER;
#endif
  return f;
}

std::vector<std::string> missing_kernels(const BuildFeatures& build, int capability) {
  std::vector<std::string> missing;
  if (!build.cuda) return missing;
  if (capability == 90 && !build.hopper) missing.emplace_back("attention for Hopper");
  if (capability == 90 && !build.cutlass) missing.emplace_back("fused GEMMs (CUTLASS)");
  if (capability >= 80 && !build.cudnn) missing.emplace_back("cuDNN's attention");
  return missing;
}

// fmt is not used here: LibTorch's include directory holds another version of its headers.
std::string describe(const BuildFeatures& build) {
  if (!build.cuda) return "GPU kernels: none, this build runs on the CPU only";
  std::string text = "GPU kernels for compute capability ";
  for (size_t i = 0; i < build.architectures.size(); ++i) {
    const int a = build.architectures[i];
    text += (i > 0 ? ", " : "") + std::to_string(a / 10) + "." + std::to_string(a % 10);
  }
  const auto yes = [](bool there) { return there ? "yes" : "no"; };
  return text + "; fused GEMMs (CUTLASS): " + yes(build.cutlass) +
         ", cuDNN's attention: " + yes(build.cudnn) +
         ", attention for Hopper: " + yes(build.hopper);
}

}  // namespace tally::train
