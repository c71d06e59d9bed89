// The operations of embedding.h on each kind of device.
#pragma once

#include "src/ops/embedding/embedding.h"

namespace tally::train::cpu {
#include "src/ops/embedding/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/embedding/backend.inc"
}  // namespace tally::train::cuda
