// The calls of the layers' GEMMs, told to whoever asked a stage for them (Stage::set_gemm_hook).
#pragma once

#include <functional>
#include <string>

namespace tally::train {

struct GemmCall {
  std::string name;             // the operation and the shapes of its operands
  std::function<void()> again;  // on the same operands, as long as their memory lives
};
// Hears each call that is enqueued; those that a CUDA graph replays are none. Empty: nobody listens.
using GemmHook = std::function<void(const GemmCall&)>;

}  // namespace tally::train
