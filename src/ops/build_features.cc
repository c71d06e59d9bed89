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

namespace {

std::string version(int capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

// The makers of GEMMs and attention on GPUs of this compute capability.
std::string kernels(const BuildFeatures& build, int capability) {
  const bool hopper = capability == 90;
  std::string gemms = "GEMMs by cuBLASLt", attention = build.cudnn ? "cuDNN's" : "unfused";
  if (hopper && build.cutlass) gemms += " and fused by CUTLASS";
  if (hopper && build.hopper) attention = "our own and " + attention;
  return gemms + ", attention " + attention;
}

}  // namespace

// fmt is not used here: LibTorch's include directory holds another version of its headers.
std::string describe(const BuildFeatures& build) {
  if (!build.cuda) return "GPU kernels: none, this build runs on the CPU only";
  std::string text = "GPU kernels for compute capability";
  std::string before;
  for (size_t i = 0; i < build.architectures.size(); ++i) {
    const std::string these = kernels(build, build.architectures[i]);
    if (i > 0) text += these == before ? "," : " (" + before + "),";
    text += " " + version(build.architectures[i]);
    before = these;
  }
  return text + " (" + before + ")";
}

}  // namespace tally::train
