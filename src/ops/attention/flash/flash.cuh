// The kernels of flash.h for one kind of arithmetic, and their launches.
#pragma once

#include "src/ops/attention/flash/backward.cuh"
#include "src/ops/attention/flash/forward.cuh"

namespace tally::train::cuda {

template <class Math, int D>
__global__ void __launch_bounds__(flash_threads) flash_forward_kernel(Flash p) {
  Forward<Math, D> block;
  block.run(p);
}
template <class Math, int D>
__global__ void __launch_bounds__(flash_threads) flash_keys_kernel(Flash p) {
  BackwardKeys<Math, D>::run(p);
}
template <class Math, int D>
__global__ void __launch_bounds__(flash_threads) flash_queries_kernel(Flash p) {
  BackwardQueries<Math, D>::run(p);
}

template <class Math, int D>
void launch_one_pass(void (*kernel)(Flash), size_t shared, int blocks, const Flash& p,
                     int64_t count, cudaStream_t stream) {
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared)));
  // All heads' blocks of one index come before the next index. Under a causal mask the blocks with
  // the most work come first and the short ones fill the end.
  const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(blocks));
  kernel<<<grid, flash_threads, shared, stream>>>(p);
  CUDA_LAUNCHED();
}

template <class Math, int D>
FlashKernels flash_kernels() {
  FlashKernels kernels;
  kernels.forward = [](const Flash& p, int64_t count, cudaStream_t stream) {
    using F = Forward<Math, D>;
    launch_one_pass<Math, D>(flash_forward_kernel<Math, D>, F::shared_bytes,
                             static_cast<int>(divide_up(p.tokens, F::queries)), p, count, stream);
  };
  kernels.backward = [](const Flash& p, int64_t count, cudaStream_t stream) {
    launch_one_pass<Math, D>(flash_keys_kernel<Math, D>, BackwardKeys<Math, D>::shared_bytes,
                             p.blocks(), p, count, stream);
    launch_one_pass<Math, D>(flash_queries_kernel<Math, D>, BackwardQueries<Math, D>::shared_bytes,
                             p.blocks(), p, count, stream);
  };
  kernels.shared_bytes = Forward<Math, D>::shared_bytes > BackwardKeys<Math, D>::shared_bytes
                             ? Forward<Math, D>::shared_bytes
                             : BackwardKeys<Math, D>::shared_bytes;
  return kernels;
}

}  // namespace tally::train::cuda
