// --find-batch: the largest micro batch that fits, by tries.
#pragma once

#include <cstdint>
#include <functional>

namespace tally::train {

// The largest n from 1 to `most` for which `fits` holds; 0: none. `fits` holds for all smaller n
// where it holds for one. Begins at `start`, from which it goes in strides of an eighth, and then
// bisects. Asks for every n at most once.
int64_t largest_that_fits(int64_t start, int64_t most, const std::function<bool(int64_t)>& fits);

}  // namespace tally::train
