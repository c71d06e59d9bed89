// Tensor maps for Hopper's copy engine (TMA).
#pragma once

#include <cuda.h>

namespace tally::train::cuda {

using TensorMapEncode = decltype(&cuTensorMapEncodeTiled);

// The driver's cuTensorMapEncodeTiled, looked up at run time, because programs must start where no
// driver is installed; null where the driver has none.
TensorMapEncode tensor_map_encode();

}  // namespace tally::train::cuda
