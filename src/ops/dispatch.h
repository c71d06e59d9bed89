// Calls the version of an operation for the stream's device. A build without CUDA has no CUDA
// streams (make_stream throws), so it has only the CPU's version. The call is a range in a
// profiler's timeline, named like the operation.
#pragma once

#include "src/ops/op_range.h"

#ifdef TALLY_WITH_CUDA
#define TALLY_BACKEND(stream, call) \
  (static_cast<void>(OpRange(__func__)), (stream).device().is_cuda() ? cuda::call : cpu::call)
#else
#define TALLY_BACKEND(stream, call) (static_cast<void>(stream), cpu::call)
#endif
