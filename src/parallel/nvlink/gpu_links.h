// The GPUs that NVLink connects. Part of the module that holds NCCL.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tally::train {

// Returns what each rank passes, in the order of ranks. Collective.
using ExchangeText = std::function<std::vector<std::string>(const std::string& mine)>;

// A name that is unique among all GPUs of all hosts.
std::string gpu_name(int index);
// Collective: whether the GPUs of all ranks, of which `index` is this one's, are of one host and
// reach each other over NVLink, and no rank's NCCL_P2P_DISABLE or NCCL_P2P_LEVEL forbids it. The
// same answer on all ranks.
bool all_linked(int index, const ExchangeText& exchange);

}  // namespace tally::train
