// The CPU back end as the dispatchers in src/ops/*.cc see it.
#pragma once

#include "src/ops/attention.h"
#include "src/ops/embedding.h"
#include "src/ops/linear.h"
#include "src/ops/loss.h"
#include "src/ops/norm.h"
#include "src/ops/optimizer.h"
#include "src/ops/stream.h"

namespace tally::train::cpu {

// Behind stream.h's functions of the same purpose.
DeviceInfo device_info();
std::unique_ptr<Stream> make_stream();

#include "src/ops/backend.inc"

}  // namespace tally::train::cpu
