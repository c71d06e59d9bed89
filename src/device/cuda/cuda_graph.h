// StepGraph on a GPU.
#pragma once

#include <memory>

#include "src/device/graph.h"

namespace tally::train::cuda {

std::unique_ptr<StepGraph> make_step_graph(Stream& stream);

}  // namespace tally::train::cuda
