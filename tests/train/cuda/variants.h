// Runs the variants of an operation that autotune chooses from, each in turn.
#pragma once

#include "src/ops/gemm/gemm.h"
#include "tests/train/cuda/both.h"

namespace tally::train {

// Makes fastest() take one variant while it lives.
struct Forced {
  Forced(cuda::TunedGemms& p, int variant) : gemms(p) {
    gemms.forced = variant;
    gemms.variants = 0;
  }
  ~Forced() { gemms.forced = -1; }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
  cuda::TunedGemms& gemms;
};

// Calls work() once for each variant that fastest() has in it. Returns how many there are, 0 where
// nothing is chosen. The CPU's results do not depend on the variant: the caller computes them once,
// before, and work() restores what the GPU's operation overwrites.
template <class F>
int each_variant(Both& b, F&& work) {
  int variants = 1;
  for (int i = 0; i < variants; ++i) {
    const Forced forced(cuda::tuned_gemms(cuda::cuda_stream(*b.gpu)), i);
    INFO("variant ", i);
    work();
    variants = forced.gemms.variants;
  }
  return variants;
}

}  // namespace tally::train
