// Descriptions of tensors for the copy engine, for attention on Hopper.
#pragma once

#include <cuda.h>

#include "src/ops/attention/attention.h"

namespace tally::train::cuda {

// The map of all tokens' rows of `columns` 16-bit values; boxes have `box_rows` rows and a head's
// 64 columns, and are swizzled by 128 bytes. `op` is named in the error. Throws DeviceError where
// the driver cannot describe it.
CUtensorMap head_map(const char* op, const void* data, const AttentionArgs& args, int64_t columns,
                     int box_rows);

}  // namespace tally::train::cuda
