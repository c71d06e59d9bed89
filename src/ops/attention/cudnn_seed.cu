#include "src/device/cuda/kernel.cuh"
#include "src/ops/attention/cudnn.h"

namespace tally::train::cuda {
namespace {

__global__ void seed_kernel(int64_t* place, DropoutSeed seed) {
  place[0] = static_cast<int64_t>(seed.get());
  place[1] = 0;
}

}  // namespace

void write_seed(CudaStream& s, void* place, DropoutSeed seed) {
  seed_kernel<<<1, 1, 0, s.stream()>>>(static_cast<int64_t*>(place), seed);
  CUDA_LAUNCHED();
}

}  // namespace tally::train::cuda
