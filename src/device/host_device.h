// Marks a function of a header that CPUs and GPUs both compute.
#pragma once

#ifdef __CUDACC__
#define TALLY_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define TALLY_HOST_DEVICE inline
#endif
