// tally-train links: bandwidth and latency of the messages between the ranks of a run, and whether
// their sums are right.
#pragma once

#include <cstdint>
#include <vector>

#include "src/config/args.h"
#include "src/train/run/world.h"

namespace tally::train {

// Element i of what `rank` sends: a whole number below 251, so that sums of tens of thousands of
// ranks are exact in float32.
float link_element(int rank, int64_t i);
// The first element that is not the sum of link_element() over `ranks`; -1: there is none.
int64_t first_wrong_sum(const std::vector<float>& got, const std::vector<int>& ranks);

// For each of `options.bytes`, a line of each operation on stdout:
//   all_reduce  of all ranks, in place. Its rate is nccl-tests' "bus bandwidth":
//               bytes / time x 2 (n - 1) / n
//   exchange    each rank sends to the rank half way round and receives from it. Its rate is that
//               of one direction: bytes / time. There is a line for each pair.
// Times are those of the slowest rank: the median of rounds, with the least and the largest. Before
// it is timed each operation is done once with numbers whose sums are known. Collective. Returns
// the exit code. Throws InputError, CheckFailed for a sum that is wrong, OutOfMemory, DeviceError,
// CommunicationError.
int links(const LinksOptions& options, World& world);

}  // namespace tally::train
