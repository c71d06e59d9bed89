// Which device serves a call. Without CUDA in the build there is no CUDA stream (make_stream
// refuses), so that the CPU is the only answer. The call is a range in a profiler's timeline, named
// like the operation.
#pragma once

#include "src/ops/op_range.h"

#ifdef TALLY_WITH_CUDA
#define TALLY_BACKEND(stream, call) \
  (static_cast<void>(OpRange(__func__)), (stream).device().is_cuda() ? cuda::call : cpu::call)
#else
#define TALLY_BACKEND(stream, call) (static_cast<void>(stream), cpu::call)
#endif
