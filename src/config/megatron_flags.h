// Flags that Megatron-LM has and tally-train does not.
#pragma once

#include <string>
#include <vector>

namespace tally::train {

struct UnsupportedFlags {
  const char* what_to_do;  // half a sentence that follows "not supported: "
  const char* names;       // "--a --b --family-*"; a star stands for any ending
};

// The list is that of Megatron-LM's megatron/training/arguments.py in autumn 2025, with its
// deprecated names.
const std::vector<UnsupportedFlags>& unsupported_flags();
// The advice on `flag` ("--name"); null where Megatron-LM has no such flag, or tally-train has
// it.
const char* unsupported_advice(const std::string& flag);

}  // namespace tally::train
