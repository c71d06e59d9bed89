// TensorFlow's checkpoints of version 2: PREFIX.index, a sorted table of BundleEntryProto by the
// variables' names, and PREFIX.data-00000-of-0000N with their bytes (tensor_bundle.proto and
// tensor_bundle.h of TensorFlow).
#pragma once

#include <functional>
#include <string>

#include "src/convert/source_weights.h"

namespace tally::train {

// Adds the variables of PREFIX to `out` that `wanted` returns true for; the names of others go to
// out->left_out. Throws std::runtime_error with one sentence that names the file where it is
// damaged, and for a wanted variable that is in parts or is not of floating-point numbers.
void read_tensor_bundle(const std::string& prefix,
                        const std::function<bool(const std::string& name)>& wanted,
                        SourceWeights* out);

}  // namespace tally::train
