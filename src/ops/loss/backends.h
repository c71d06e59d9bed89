// The operations of loss.h on each kind of device.
#pragma once

#include "src/ops/loss/loss.h"

namespace tally::train::cpu {
#include "src/ops/loss/backend.inc"
}  // namespace tally::train::cpu

namespace tally::train::cuda {
#include "src/ops/loss/backend.inc"
}  // namespace tally::train::cuda
