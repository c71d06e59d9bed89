// The CUDA back end as the dispatchers in src/ops/*.cc see it: no CUDA header is needed to include
// this.
#pragma once

#include "src/ops/attention.h"
#include "src/ops/embedding.h"
#include "src/ops/linear.h"
#include "src/ops/loss.h"
#include "src/ops/norm.h"
#include "src/ops/optimizer.h"
#include "src/ops/stream.h"

namespace tally::train::cuda {

// Behind stream.h's functions of the same purpose.
int device_count();
std::string unavailable_reason();
DeviceInfo device_info(int index);
std::unique_ptr<Stream> make_stream(int index);

#include "src/ops/backend.inc"

}  // namespace tally::train::cuda
