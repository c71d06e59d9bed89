// Which back end serves a call. Without CUDA in the build there is no CUDA stream (make_stream
// refuses), so the CPU is the only answer.
#pragma once

#include "src/ops/cpu/cpu_ops.h"
#ifdef TALLY_WITH_CUDA
#include "src/ops/cuda/cuda_ops.h"
#define TALLY_BACKEND(stream, call) ((stream).device().is_cuda() ? cuda::call : cpu::call)
#else
#define TALLY_BACKEND(stream, call) (static_cast<void>(stream), cpu::call)
#endif
